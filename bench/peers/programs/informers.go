package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	clientgo "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// place says what is watched, and where.
type place struct {
	kubeconfig, kind, plural, namespace string
	expect                              int
}

func (p *place) flags(set *flag.FlagSet) {
	set.StringVar(&p.kubeconfig, "kubeconfig", "", "the server")
	set.StringVar(&p.kind, "kind", "Widget", "Pod, or a kind of the group bench.example.com")
	set.StringVar(&p.plural, "plural", "widgets", "its plural")
	set.StringVar(&p.namespace, "namespace", "", "only this namespace; all without it")
	set.IntVar(&p.expect, "expect", 0, "how many objects there are")
}

func (p *place) gvk() schema.GroupVersionKind {
	if p.kind == "Pod" {
		return corev1.SchemeGroupVersion.WithKind("Pod")
	}
	return widgets.WithKind(p.kind)
}

func (p *place) gvr() schema.GroupVersionResource {
	return p.gvk().GroupVersion().WithResource(p.plural)
}

// config leaves the rate of requests to the server, as controllers of any size do.
func (p *place) config() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", p.kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return config, nil
}

// subscriber counts what one handler is given.
type subscriber struct {
	events, adds   atomic.Int64
	newest, wanted atomic.Uint64
	expect         int64
	spec           bool
	read           atomic.Int64
	filled         chan struct{}
	reached        chan struct{}
}

func (s *subscriber) see(object any, initial bool) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		panic(err)
	}
	version, _ := strconv.ParseUint(accessor.GetResourceVersion(), 10, 64)
	if s.spec {
		s.read.Add(field(object))
	}
	s.events.Add(1)
	if version > s.newest.Load() {
		s.newest.Store(version)
		if version >= s.wanted.Load() {
			signal(s.reached)
		}
	}
	if initial && s.adds.Add(1) == s.expect {
		signal(s.filled)
	}
}

// field reads something that is not metadata.
func field(object any) int64 {
	switch object := object.(type) {
	case *corev1.Pod:
		return int64(len(object.Spec.NodeName))
	case *Widget:
		return object.Spec.Replicas
	case *unstructured.Unstructured:
		replicas, _, _ := unstructured.NestedInt64(object.Object, "spec", "replicas")
		return replicas
	}
	return 0
}

func signal(channel chan struct{}) {
	select {
	case channel <- struct{}{}:
	default:
	}
}

func (s *subscriber) reach(version uint64) {
	s.wanted.Store(version)
	for s.newest.Load() < version {
		<-s.reached
	}
	s.wanted.Store(math.MaxUint64)
}

// informers follows a kind. Lines: "start" is answered when every handler was called for every object; "heap"; "reach VERSION" is
// answered when every handler has seen it.
func informers(ctx context.Context, arguments []string) error {
	set := flag.NewFlagSet("informers", flag.ExitOnError)
	var from place
	from.flags(set)
	mode := set.String("mode", "dynamic", "typed, dynamic, metadata, cache-typed or cache-unstructured")
	handlers := set.Int("handlers", 1, "how many are told of every event")
	spec := set.Bool("spec", false, "handlers read a field of the spec")
	_ = set.Parse(arguments)
	config, err := from.config()
	if err != nil {
		return err
	}
	informer, run, err := informer(ctx, *mode, &from, config)
	if err != nil {
		return err
	}
	subscribers := make([]*subscriber, *handlers)
	for i := range subscribers {
		s := &subscriber{expect: int64(from.expect), spec: *spec, filled: make(chan struct{}, 1), reached: make(chan struct{}, 1)}
		s.wanted.Store(math.MaxUint64)
		subscribers[i] = s
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
			for _, s := range subscribers {
				handle := cache.ResourceEventHandlerDetailedFuncs{
					AddFunc:    func(object any, initial bool) { s.see(object, initial) },
					UpdateFunc: func(_, object any) { s.see(object, false) },
					DeleteFunc: func(any) { s.events.Add(1) },
				}
				if err := informer.add(handle); err != nil {
					return err
				}
			}
			go run()
			for _, s := range subscribers {
				<-s.filled
			}
			answer{Objects: from.expect, Events: events(subscribers)}.print()
		case "reach":
			for _, s := range subscribers {
				s.reach(number)
			}
			answer{Events: events(subscribers)}.print()
		case "heap":
			answer{Heap: heap(), Events: events(subscribers)}.print()
		default:
			return fmt.Errorf("what is %q?", word)
		}
	}
}

func events(subscribers []*subscriber) (sum int64) {
	for _, s := range subscribers {
		sum += s.events.Load()
	}
	return sum
}

// subscribable is what client-go and controller-runtime have in common.
type subscribable struct {
	add func(cache.ResourceEventHandler) error
}

// informer makes one, and what runs it. Whatever holds objects whole keeps what is otherwise stripped.
func informer(ctx context.Context, mode string, from *place, config *rest.Config) (subscribable, func(), error) {
	var shared cache.SharedIndexInformer
	var run func()
	mode, whole := strings.CutSuffix(mode, "-whole")
	switch mode {
	case "typed":
		config.ContentType = runtime.ContentTypeProtobuf
		config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
		set, err := kubernetes.NewForConfig(config)
		if err != nil {
			return subscribable{}, nil, err
		}
		factory := clientgo.NewSharedInformerFactoryWithOptions(set, 0, clientgo.WithNamespace(from.namespace))
		shared, run = factory.Core().V1().Pods().Informer(), func() { factory.StartWithContext(ctx) }
	case "dynamic":
		set, err := dynamic.NewForConfig(config)
		if err != nil {
			return subscribable{}, nil, err
		}
		factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(set, 0, from.namespace, nil)
		shared, run = factory.ForResource(from.gvr()).Informer(), func() { factory.Start(ctx.Done()) }
	case "metadata":
		set, err := metadata.NewForConfig(config)
		if err != nil {
			return subscribable{}, nil, err
		}
		factory := metadatainformer.NewFilteredSharedInformerFactory(set, 0, from.namespace, nil)
		shared, run = factory.ForResource(from.gvr()).Informer(), func() { factory.Start(ctx.Done()) }
	case "cache-typed", "cache-unstructured":
		return cached(ctx, mode, from, config)
	default:
		return subscribable{}, nil, fmt.Errorf("what mode is %q?", mode)
	}
	if !whole {
		if err := shared.SetTransform(strip); err != nil {
			return subscribable{}, nil, err
		}
	}
	add := func(handler cache.ResourceEventHandler) error {
		_, err := shared.AddEventHandler(handler)
		return err
	}
	return subscribable{add}, run, nil
}

// cached is the cache of controller-runtime.
func cached(ctx context.Context, mode string, from *place, config *rest.Config) (subscribable, func(), error) {
	options := ctrlcache.Options{Scheme: clientscheme.Scheme, DefaultTransform: ctrlcache.TransformStripManagedFields()}
	if from.kind != "Pod" {
		options.Scheme = scheme(from.kind)
	}
	if from.namespace != "" {
		options.DefaultNamespaces = map[string]ctrlcache.Config{from.namespace: {}}
	}
	all, err := ctrlcache.New(config, options)
	if err != nil {
		return subscribable{}, nil, err
	}
	var object client.Object
	if mode == "cache-unstructured" {
		any := &unstructured.Unstructured{}
		any.SetGroupVersionKind(from.gvk())
		object = any
	} else {
		typed, err := options.Scheme.New(from.gvk())
		if err != nil {
			return subscribable{}, nil, err
		}
		object = typed.(client.Object)
	}
	add := func(handler cache.ResourceEventHandler) error {
		informer, err := all.GetInformer(ctx, object, ctrlcache.BlockUntilSynced(false))
		if err != nil {
			return err
		}
		_, err = informer.AddEventHandler(handler)
		return err
	}
	run := func() {
		if err := all.Start(ctx); err != nil {
			panic(err)
		}
	}
	return subscribable{add}, run, nil
}

// strip drops what ours drops by default, too.
func strip(object any) (any, error) {
	if accessor, ok := object.(metav1.Object); ok && accessor.GetManagedFields() != nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}
