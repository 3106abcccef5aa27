// Small programs on client-go and controller-runtime, for bench/clients to measure beside ours.
//
// Each is steered by flags and by lines: it prints one line of JSON once it is ready, and one more for each line that it reads.
// What the lines are is said at each program. It ends when its input does.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func main() {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	programs := map[string]func(context.Context, []string) error{
		"informers": informers,
		"queue":     queue,
		"reconcile": reconcileNothing,
	}
	if len(os.Args) < 2 || programs[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: go-clients informers|queue|reconcile [FLAG ...]")
		os.Exit(2)
	}
	if err := programs[os.Args[1]](context.Background(), os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
