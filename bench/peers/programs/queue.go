package main

import (
	"context"
	"flag"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// queue adds keys, takes them and is done with them. A line "run" does all of it, once more.
func queue(_ context.Context, arguments []string) error {
	set := flag.NewFlagSet("queue", flag.ExitOnError)
	mode := set.String("mode", "priority", "workqueue or priority")
	keys := set.Int("keys", 1_000, "how many there are")
	items := set.Int("items", 1_000_000, "how many are worked on in one run")
	workers := set.Int("workers", 1, "1: one after the other; more: so many add while as many take")
	after := set.Duration("after", 0, "add each after a delay of up to this")
	_ = set.Parse(arguments)
	all := make([]reconcile.Request, *keys)
	for i := range all {
		all[i].NamespacedName = types.NamespacedName{Namespace: fmt.Sprintf("team-%d", i%50), Name: fmt.Sprintf("object-%07d", i)}
	}
	var queue workqueue.TypedRateLimitingInterface[reconcile.Request]
	if *mode == "workqueue" {
		limiter := workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]()
		queue = workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{Name: "bench"})
	} else {
		queue = priorityqueue.New[reconcile.Request]("bench")
	}
	in := input()
	answer{}.print()
	for {
		if word, _, more := in.next(); !more {
			return nil
		} else if word != "run" {
			return fmt.Errorf("what is %q?", word)
		}
		before, begin := cpu(), time.Now()
		for done := 0; done < *items; done += len(all) {
			if *workers == 1 {
				alone(queue, all, *after)
			} else {
				together(queue, all, *workers, *after)
			}
		}
		answer{CPU: cpu() - before, Wall: int64(time.Since(begin))}.print()
	}
}

// add is now or, if there are delays, at one of a hundred moments.
func add(queue workqueue.TypedRateLimitingInterface[reconcile.Request], key reconcile.Request, number int, after time.Duration) {
	if after == 0 {
		queue.Add(key)
	} else {
		queue.AddAfter(key, after*time.Duration(number%100+1)/100)
	}
}

func alone(queue workqueue.TypedRateLimitingInterface[reconcile.Request], keys []reconcile.Request, after time.Duration) {
	for number, key := range keys {
		add(queue, key, number, after)
	}
	for range keys {
		key, _ := queue.Get()
		queue.Forget(key)
		queue.Done(key)
	}
}

func together(queue workqueue.TypedRateLimitingInterface[reconcile.Request], keys []reconcile.Request, workers int, after time.Duration) {
	var group sync.WaitGroup
	var taken atomic.Int64
	for worker := range workers {
		group.Go(func() {
			for number := worker; number < len(keys); number += workers {
				add(queue, keys[number], number, after)
			}
		})
		group.Go(func() {
			for taken.Add(1) <= int64(len(keys)) {
				key, _ := queue.Get()
				queue.Forget(key)
				queue.Done(key)
			}
		})
	}
	group.Wait()
}
