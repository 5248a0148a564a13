// etcd, etcdctl and etcdutl in one program. It looks at the name it was called
// by, so that the three share one link step and one copy of the code.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/etcdctl/v3/ctlv3"
	"go.etcd.io/etcd/etcdutl/v3/etcdutl"
	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	switch name := filepath.Base(os.Args[0]); name {
	case "etcd":
		etcdmain.Main(os.Args)
	case "etcdctl":
		ctlv3.MustStart()
	case "etcdutl":
		if err := offline().Execute(); err != nil {
			os.Exit(1)
		}
	default:
		fmt.Fprintf(os.Stderr, "called as %q: link this program as etcd, etcdctl or etcdutl and call it by that name\n", name)
		os.Exit(2)
	}
}

// offline puts together the commands that work on a data folder without a server.
func offline() *cobra.Command {
	root := &cobra.Command{Use: "etcdutl", Short: "Works on the files of an etcd that is not running"}
	root.PersistentFlags().StringVarP(&etcdutl.OutputFormat, "write-out", "w", "simple", "how to print: fields, json, protobuf, simple or table")
	root.AddCommand(
		etcdutl.NewDefragCommand(),
		etcdutl.NewHashKVCommand(),
		etcdutl.NewMigrateCommand(),
		etcdutl.NewSnapshotCommand(),
		etcdutl.NewVersionCommand(),
	)
	return root
}
