package cluster_test

import (
	"testing"

	"github.com/millrace/millrace/bench/cluster/clustertest"
)

func TestMain(m *testing.M) { clustertest.Main(m) }
