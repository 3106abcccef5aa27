package main

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// idle is a reconciler that reads its object and does nothing.
type idle struct {
	reader    client.Reader
	runs      atomic.Int64
	wanted    atomic.Int64
	done      chan struct{}
	recording atomic.Bool
	lock      sync.Mutex
	starts    [][2]uint64
	newest    uint64
	reach     uint64
	reached   chan struct{}
}

func (r *idle) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	begin := time.Now()
	var object Widget
	if err := r.reader.Get(ctx, request.NamespacedName, &object); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if r.recording.Load() {
		r.record(object.ResourceVersion, begin)
	}
	if r.runs.Add(1) == r.wanted.Load() {
		signal(r.done)
	}
	return reconcile.Result{}, nil
}

func (r *idle) record(version string, begin time.Time) {
	number, _ := strconv.ParseUint(version, 10, 64)
	r.lock.Lock()
	defer r.lock.Unlock()
	r.starts = append(r.starts, [2]uint64{number, uint64(begin.UnixNano())})
	r.newest = max(r.newest, number)
	if r.newest >= r.reach {
		signal(r.reached)
	}
}

// take waits until a version was reconciled, and gives what was recorded.
func (r *idle) take(version uint64) [][2]uint64 {
	for {
		r.lock.Lock()
		r.reach = version
		if r.newest >= version {
			starts := r.starts
			r.starts = nil
			r.recording.Store(false)
			r.lock.Unlock()
			return starts
		}
		r.lock.Unlock()
		<-r.reached
	}
}

// reconcileNothing runs a controller with one worker. Lines: "start" is answered when every object was reconciled; "record"; "reach
// VERSION" is answered with what was recorded, when that was reconciled; "again" reconciles every object once more; "heap".
func reconcileNothing(ctx context.Context, arguments []string) error {
	set := flag.NewFlagSet("reconcile", flag.ExitOnError)
	var from place
	from.flags(set)
	mode := set.String("mode", "priority", "workqueue or priority")
	_ = set.Parse(arguments)
	rest, err := from.config()
	if err != nil {
		return err
	}
	priority := *mode == "priority"
	options := ctrl.Options{
		Scheme:                 scheme(from.kind),
		Metrics:                server.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
		Cache:                  ctrlcache.Options{DefaultTransform: ctrlcache.TransformStripManagedFields()},
		Controller:             config.Controller{UsePriorityQueue: &priority},
	}
	if from.namespace != "" {
		options.Cache.DefaultNamespaces = map[string]ctrlcache.Config{from.namespace: {}}
	}
	manager, err := ctrl.NewManager(rest, options)
	if err != nil {
		return err
	}
	worker := &idle{reader: manager.GetClient(), done: make(chan struct{}, 1), reached: make(chan struct{}, 1)}
	var queue workqueue.TypedRateLimitingInterface[reconcile.Request]
	own := source.Func(func(_ context.Context, of workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue = of
		return nil
	})
	err = ctrl.NewControllerManagedBy(manager).For(&Widget{}).WatchesRawSource(own).
		WithOptions(controller.Options{MaxConcurrentReconciles: 1}).Complete(worker)
	if err != nil {
		return err
	}
	in := input()
	answer{Heap: heap()}.print()
	for {
		word, number, more := in.next()
		if !more {
			return nil
		}
		switch word {
		case "start":
			worker.wanted.Store(int64(from.expect))
			go func() {
				if err := manager.Start(ctx); err != nil {
					panic(err)
				}
			}()
			<-worker.done
			answer{Objects: from.expect, Events: worker.runs.Load()}.print()
		case "record":
			worker.recording.Store(true)
			answer{}.print()
		case "reach":
			starts := worker.take(number)
			answer{Starts: starts, Events: worker.runs.Load()}.print()
		case "again":
			keys, err := keys(ctx, worker.reader)
			if err != nil {
				return err
			}
			before, begin := cpu(), time.Now()
			worker.wanted.Store(worker.runs.Load() + int64(len(keys)))
			for _, key := range keys {
				queue.Add(key)
			}
			<-worker.done
			answer{CPU: cpu() - before, Wall: int64(time.Since(begin)), Events: int64(len(keys))}.print()
		case "heap":
			answer{Heap: heap()}.print()
		default:
			return fmt.Errorf("what is %q?", word)
		}
	}
}

func keys(ctx context.Context, reader client.Reader) ([]reconcile.Request, error) {
	var list WidgetList
	if err := reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	keys := make([]reconcile.Request, len(list.Items))
	for i := range list.Items {
		keys[i].NamespacedName = client.ObjectKeyFromObject(&list.Items[i])
	}
	return keys, nil
}
