package main

import (
	"testing"

	"github.com/millrace/millrace/cmd/cli/clitest"
)

// nobody is a control plane that is not there, and the flags to find that out at once.
const nobody = " --control http://127.0.0.1:1 --patience 10ms"

// statuses has every command that is not a group.
var statuses = map[string]clitest.Status{
	"completion": {"csh", ""},

	"config check":          {"", "NONE"},
	"config print-defaults": {"launcher", ""},
	"context add": {"local --control ftp://",
		"local --control http://127.0.0.1:1 --cert NONE --key NONE --ca NONE"},
	"context list":   {"--output xml", ""},
	"context remove": {"nosuch", ""},
	"context show":   {"nosuch", ""},
	"context use":    {"nosuch", ""},

	"control backup":         {"NONE --patience soon", "NONE" + nobody},
	"control members add":    {"10.0.0.4:7461" + nobody, "http://10.0.0.4:7461" + nobody},
	"control members list":   {"--control ftp://x", nobody},
	"control members remove": {"m --control ftp://x", "m" + nobody},
	"control restore":        {"TEXT", "TEXT --data NONE"},
	"control run":            {"--data NONE --request-memory much", "--data TEXT/data"},

	"dataset drift":     {"TEXT TEXT --psi -1", "NONE NONE"},
	"dataset generate":  {"--out NONE --model rm9", "--out TEXT --rows 10"},
	"dataset import":    {"TEXT --out NONE --input-format csv", "NONE --out NONE"},
	"dataset inspect":   {"TEXT --input-format csv", "NONE"},
	"dataset place":     {"NONE --replicas 0", "NONE" + nobody},
	"dataset replicate": {"[", nobody},
	"dataset summarize": {"TEXT --input-format csv", "NONE"},
	"dataset verify":    {"[", nobody},

	"demo": {"--rows 0", "--rows 10 --dir TEXT"},
	"down": {"--context", ""},

	"drive create":   {"file:NONE?lba=1024", "file:NONE?size=777B"},
	"drive info":     {"file:", "file:NONE"},
	"drive list":     {"--output xml", ""},
	"drive ls":       {"file:", "file:NONE"},
	"drive put":      {"file: TEXT", "file:NONE TEXT"},
	"drive reset":    {"mem:", "nvme:/dev/nvme99"},
	"drive retire":   {"drive0", "node0/drive0" + nobody},
	"drive serve":    {"--flash NONE --size much", "--flash NONE"},
	"drive smart":    {"file:", "file:NONE"},
	"drive trim":     {"file:", "file:NONE"},
	"drive validate": {"file:", "file:NONE"},

	"help": {"nosuch", ""},

	"image activate": {"file:NONE first", "file:NONE 1"},
	"image build":    {"TEXT --stock", "NONE --out NONE"},
	"image diff":     {"TEXT TEXT --output xml", "TEXT NONE"},
	"image explore":  {"--elements 0", "--svg NONE/none"},
	"image info":     {"TEXT --output xml", "TEXT"},
	"image list":     {"file:", "file:NONE"},
	"image package":  {"--out NONE", "--unit clamp --out TEXT"},
	"image load":     {"file:NONE TEXT --slot 0", "file:NONE TEXT"},
	"image rollback": {"file:", "file:NONE"},
	"image sign":     {"TEXT", "TEXT --key NONE"},
	"image trust":    {"mem: --image-policy warn", "file:NONE --image-policy warn"},
	"image verify":   {"TEXT --revoke x", "TEXT"},

	"jobs cancel":     {"j --control ftp://x", "j" + nobody},
	"jobs checkpoint": {"j", "j --out NONE" + nobody},
	"jobs list":       {"--control ftp://x", nobody},
	"jobs show":       {"j --control ftp://x", "j" + nobody},
	"jobs submit":     {"--pipeline rm1 --tail cut" + nobody, "--pipeline rm1" + nobody},
	"jobs watch":      {"j --control ftp://x", "j" + nobody},

	"manual":      {"NONE --output xml", "TEXT/man1"},
	"node run":    {"--log-level loud --config TEXT", "--config TEXT"},
	"nodes drain": {"n --control ftp://x", "n" + nobody},
	"nodes list":  {"--control ftp://x", nobody},
	"nodes show":  {"n --control ftp://x", "n" + nobody},

	"pipeline check": {"--output xml TEXT", "TEXT"},
	"pipeline show":  {"--output xml TEXT", "TEXT"},
	"pipeline init":  {"NONE --output xml", "NONE"},

	"vocabulary build":  {"--pipeline criteo --in TEXT", "--pipeline NONE --in TEXT --out NONE"},
	"vocabulary diff":   {"TEXT TEXT --output xml", "TEXT NONE"},
	"vocabulary extend": {"TEXT --pipeline criteo --in TEXT", "TEXT --pipeline NONE --in TEXT --out NONE"},
	"vocabulary info":   {"TEXT --output xml", "TEXT"},
	"operator test":     {"TEXT TEXT --output xml", "TEXT TEXT"},
	"pki init":          {"--output xml", "--dir TEXT"},
	"pki issue":         {"--role node --name n --dir NONE", "--role operator --name ann --dir NONE"},
	"plan":              {"--t NaN", "--t 1 --prices NONE"},
	"private":           {"--output xml", "--verbose"},
	"preprocess":        {"--pipeline rm1 --in TEXT --out NONE --tail cut", "--pipeline rm1 --in NONE --out NONE"},
	"train":             {"--pipeline rm1 --in TEXT --shuffle well", "--pipeline rm1 --in NONE"},
	"up":                {"--drive-size much", "--dir TEXT"},
	"version":           {"--output xml", ""},
	"worker describe":   {"", "TEXT"},
	"worker run":        {"--config TEXT --threads many", "--config NONE"},
}

// TestEveryCommandsStatus calls each command wrongly, and so that it fails.
func TestEveryCommandsStatus(t *testing.T) { tree.CheckStatuses(t, statuses) }
