package store

import (
	"context"
	"log/slog"
	"os"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// zapLogger returns a zap logger for etcd that writes to l.
func zapLogger(l *slog.Logger) *zap.Logger {
	return zap.New(&slogCore{handler: l.Handler()}, zap.WithFatalHook(fatalHook{logger: l, exit: os.Exit}))
}

// slogCore is a zapcore.Core over a slog.Handler. etcd also warns of ordinary events (a slow disk, a peer that starts
// later), so that its warnings become debug lines, and its errors become warnings.
type slogCore struct{ handler slog.Handler }

var _ zapcore.Core = (*slogCore)(nil)

// level translates a level. It reports false for a level whose lines are dropped.
func level(l zapcore.Level) (slog.Level, bool) {
	switch {
	case l >= zapcore.DPanicLevel:
		return slog.LevelError, true
	case l >= zapcore.ErrorLevel:
		return slog.LevelWarn, true
	case l >= zapcore.WarnLevel:
		return slog.LevelDebug, true
	}
	return 0, false
}

func (c *slogCore) Enabled(l zapcore.Level) bool {
	to, ok := level(l)
	return ok && c.handler.Enabled(context.Background(), to)
}

func (c *slogCore) With(fields []zapcore.Field) zapcore.Core {
	return &slogCore{handler: c.handler.WithAttrs(attrs(fields))}
}

func (c *slogCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return ce.AddCore(e, c)
	}
	return ce
}

func (c *slogCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	to, _ := level(e.Level)
	r := slog.NewRecord(e.Time, to, "etcd: "+e.Message, 0)
	r.AddAttrs(attrs(fields)...)
	return c.handler.Handle(context.Background(), r)
}

func (c *slogCore) Sync() error { return nil }

// attrs translates zap's fields.
func attrs(fields []zapcore.Field) []slog.Attr {
	m := zapcore.NewMapObjectEncoder()
	list := make([]slog.Attr, 0, len(fields))
	for _, f := range fields {
		f.AddTo(m)
		if v, ok := m.Fields[f.Key]; ok {
			list = append(list, slog.Any(f.Key, v))
		}
	}
	return list
}
