// The two ends of konnectivity in one program: proxy-server beside the API
// server, proxy-agent beside the workloads. The name it was called by decides.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	agent "sigs.k8s.io/apiserver-network-proxy/cmd/agent/app"
	agentoptions "sigs.k8s.io/apiserver-network-proxy/cmd/agent/app/options"
	server "sigs.k8s.io/apiserver-network-proxy/cmd/server/app"
	serveroptions "sigs.k8s.io/apiserver-network-proxy/cmd/server/app/options"
	"sigs.k8s.io/apiserver-network-proxy/pkg/util"
)

// version is the release of the module below, which does not name it itself.
const version = "v0.36.0"

func main() {
	command := pick(filepath.Base(os.Args[0]))
	command.Version = version
	addLogFlags(command)
	err := command.Execute()
	klog.Flush()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// pick returns the command for a name, or leaves with a sentence.
func pick(name string) *cobra.Command {
	switch name {
	case "proxy-server":
		options := serveroptions.NewProxyRunOptions()
		command := server.NewProxyCommand(&server.Proxy{}, options)
		command.Flags().AddFlagSet(options.Flags())
		return command
	case "proxy-agent":
		options := agentoptions.NewGrpcProxyAgentOptions()
		command := agent.NewAgentCommand(&agent.Agent{}, options)
		command.Flags().AddFlagSet(options.Flags())
		return command
	}
	fmt.Fprintf(os.Stderr, "called as %q: link this program as proxy-server or proxy-agent and call it by that name\n", name)
	os.Exit(2)
	return nil
}

// addLogFlags gives the command klog's flags, spelt with dashes as the released
// images spell them, because tenants' arguments are written for those.
func addLogFlags(command *cobra.Command) {
	logs := flag.NewFlagSet("logs", flag.ExitOnError)
	klog.InitFlags(logs)
	logs.VisitAll(func(one *flag.Flag) {
		one.Name = util.Normalize(one.Name)
		command.Flags().AddGoFlag(one)
	})
}
