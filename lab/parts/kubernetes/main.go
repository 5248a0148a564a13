// One program that is every Kubernetes program the lab runs, of any release. It looks at the
// name it was called by, so a symbolic link per program is all it takes: one
// link step and one copy of the shared code instead of seven.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubeadm "k8s.io/kubernetes/cmd/kubeadm/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// servers are the programs that share component-base's way of running.
var servers = map[string]func() *cobra.Command{
	"kube-apiserver":          func() *cobra.Command { return apiserver.NewAPIServerCommand() },
	"kube-controller-manager": func() *cobra.Command { return controllermanager.NewControllerManagerCommand() },
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kube-proxy":              func() *cobra.Command { return proxy.NewProxyCommand() },
	"kubelet":                 newKubelet,
}

// newKubelet gives it a context, which it wants since 1.32.
func newKubelet() *cobra.Command {
	switch build := any(kubelet.NewKubeletCommand).(type) {
	case func() *cobra.Command:
		return build()
	case func(context.Context) *cobra.Command:
		return build(context.Background())
	default:
		panic(fmt.Sprintf("kubelet is made in another way now: %T", build))
	}
}

func main() {
	name := filepath.Base(os.Args[0])
	switch {
	case servers[name] != nil:
		os.Exit(cli.Run(servers[name]()))
	case name == "kubeadm":
		// Its own way of ending moved to another package with 1.34.
		if err := kubeadm.Run(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case name == "kubectl" || strings.HasPrefix(name, "kubectl-"):
		if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
			kubectlutil.CheckErr(err)
		}
	default:
		fmt.Fprintf(os.Stderr, "called as %q: link this program as kube-apiserver, kube-controller-manager, kube-scheduler, kube-proxy, kubelet, kubeadm or kubectl and call it by that name\n", name)
		os.Exit(2)
	}
}
