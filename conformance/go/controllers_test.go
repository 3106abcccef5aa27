package conformance

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
)

// A loop as the sample controller of Kubernetes has it: informer, queue, workers. Every ConfigMap becomes a Secret; the
// first attempt at each fails, to see that it is tried again.
func TestALoopOverAWorkQueueConverges(t *testing.T) {
	p := newPlace(t)
	factory := informers.NewSharedInformerFactoryWithOptions(p.clients, 0, informers.WithNamespace(p.namespace),
		informers.WithTweakListOptions(func(options *metav1.ListOptions) {
			options.FieldSelector = "metadata.name!=kube-root-ca.crt"
		}))
	lister := factory.Core().V1().ConfigMaps().Lister()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]())
	defer queue.ShutDown()
	enqueue := func(object any) {
		if name, err := cache.DeletionHandlingObjectToName(object); err == nil {
			queue.Add(name)
		}
	}
	_, err := factory.Core().V1().ConfigMaps().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: enqueue, UpdateFunc: func(_, object any) { enqueue(object) }, DeleteFunc: enqueue,
	})
	must(t, err)

	secrets := p.clients.CoreV1().Secrets(p.namespace)
	var failed sync.Map
	reconcile := func(name cache.ObjectName) error {
		if _, tried := failed.LoadOrStore(name, true); !tried {
			return errors.New("the first attempt fails")
		}
		object, err := lister.ConfigMaps(name.Namespace).Get(name.Name)
		if apierrors.IsNotFound(err) {
			err := secrets.Delete(p.context, name.Name, metav1.DeleteOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		}
		if err != nil {
			return err
		}
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name.Name}, StringData: object.Data}
		if _, err = secrets.Update(p.context, secret, metav1.UpdateOptions{}); apierrors.IsNotFound(err) {
			_, err = secrets.Create(p.context, secret, metav1.CreateOptions{})
		}
		return err
	}
	for range 2 {
		go func() {
			for name, shutdown := queue.Get(); !shutdown; name, shutdown = queue.Get() {
				if err := reconcile(name); err != nil {
					queue.AddRateLimited(name)
				} else {
					queue.Forget(name)
				}
				queue.Done(name)
			}
		}()
	}
	factory.StartWithContext(p.context)
	for i := range 10 {
		p.create(fmt.Sprintf("item-%d", i), map[string]string{"n": fmt.Sprint(i)})
	}
	changed := p.get("item-3")
	changed.Data["n"] = "changed"
	maps := p.clients.CoreV1().ConfigMaps(p.namespace)
	_, err = maps.Update(p.context, changed, metav1.UpdateOptions{})
	must(t, err)
	must(t, maps.Delete(p.context, "item-4", metav1.DeleteOptions{}))
	eventually(t, "there are nine secrets, and the changed one has changed", func() bool {
		list, err := secrets.List(p.context, metav1.ListOptions{FieldSelector: "type=Opaque"})
		must(t, err)
		for _, secret := range list.Items {
			if secret.Name == "item-3" && string(secret.Data["n"]) != "changed" {
				return false
			}
		}
		return len(list.Items) == 9
	})
}

func TestLeadershipIsHandedOver(t *testing.T) {
	p := newPlace(t)
	leaders := make(chan string, 10)
	candidate := func(name string) context.CancelFunc {
		ctx, cancel := context.WithCancel(p.context)
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: &resourcelock.LeaseLock{
				LeaseMeta:  metav1.ObjectMeta{Name: "leader", Namespace: p.namespace},
				Client:     p.clients.CoordinationV1(),
				LockConfig: resourcelock.ResourceLockConfig{Identity: name},
			},
			LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 100 * time.Millisecond,
			ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { leaders <- name },
				OnStoppedLeading: func() {},
			},
		})
		must(t, err)
		go elector.Run(ctx)
		return cancel
	}
	leader := func() string {
		select {
		case name := <-leaders:
			return name
		case <-time.After(patience):
			t.Fatal("nobody leads")
			return ""
		}
	}
	stopFirst := candidate("first")
	equal(t, leader(), "first", "the leader")
	defer candidate("second")()
	lease := func() (string, int32) {
		lease, err := p.clients.CoordinationV1().Leases(p.namespace).Get(p.context, "leader", metav1.GetOptions{})
		must(t, err)
		return *lease.Spec.HolderIdentity, *lease.Spec.LeaseTransitions
	}
	holder, transitions := lease()
	equal(t, holder, "first", "the holder")
	equal(t, transitions, int32(0), "transitions")
	stopFirst()
	equal(t, leader(), "second", "the leader")
	holder, transitions = lease()
	equal(t, holder, "second", "the holder")
	equal(t, transitions, int32(1), "transitions")
}

func TestRecordersOfBothAPIsAreHeard(t *testing.T) {
	p := newPlace(t)
	about := p.create("about", nil)
	about.APIVersion, about.Kind = "v1", "ConfigMap" // a typed client leaves them out

	broadcaster := record.NewBroadcaster(record.WithContext(p.context))
	broadcaster.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: p.clients.CoreV1().Events("")})
	recorder := broadcaster.NewRecorder(clientgoscheme.Scheme, corev1.EventSource{Component: "conformance"})
	for range 3 {
		recorder.Event(about, corev1.EventTypeNormal, "Old", "the same again")
	}
	core := p.clients.CoreV1().Events(p.namespace)
	eventually(t, "three events of the old recorder are one with a count", func() bool {
		list, err := core.List(p.context, metav1.ListOptions{FieldSelector: "reason=Old,involvedObject.uid=" + string(about.UID)})
		must(t, err)
		return len(list.Items) == 1 && list.Items[0].Count == 3
	})

	newer := events.NewBroadcaster(&events.EventSinkImpl{Interface: p.clients.EventsV1()})
	defer newer.Shutdown()
	must(t, newer.StartRecordingToSinkWithContext(p.context))
	recorder2 := newer.NewRecorder(clientgoscheme.Scheme, "conformance.watchkeeper.dev/test")
	for range 3 {
		recorder2.Eventf(about, nil, corev1.EventTypeWarning, "New", "Testing", "number %d", 7)
	}
	var found eventsv1.Event
	eventually(t, "three events of the new recorder are one with a series", func() bool {
		list, err := p.clients.EventsV1().Events(p.namespace).List(p.context, metav1.ListOptions{FieldSelector: "reason=New"})
		must(t, err)
		if len(list.Items) == 1 && list.Items[0].Series != nil {
			found = list.Items[0]
			return true
		}
		return false
	})
	equal(t, found.Regarding.UID, about.UID, "whom it is about")
	same, err := core.Get(p.context, found.Name, metav1.GetOptions{})
	must(t, err)
	equal(t, same.Message, "number 7", "its message in the old API")
	equal(t, same.ReportingController, "conformance.watchkeeper.dev/test", "its reporter in the old API")
}

func TestAWatchGoesOnWhereTheLastOneEnded(t *testing.T) {
	p := newPlace(t)
	maps := p.clients.CoreV1().ConfigMaps(p.namespace)
	start, err := maps.List(p.context, metav1.ListOptions{})
	must(t, err)
	one := int64(1)
	watch, err := maps.Watch(p.context, metav1.ListOptions{ResourceVersion: start.ResourceVersion, TimeoutSeconds: &one, AllowWatchBookmarks: true})
	must(t, err)
	p.create("during", nil)
	version := ""
	for event := range watch.ResultChan() {
		if object, ok := event.Object.(*corev1.ConfigMap); ok {
			version = object.ResourceVersion
		}
	}
	p.create("between", nil)
	watch, err = maps.Watch(p.context, metav1.ListOptions{ResourceVersion: version})
	must(t, err)
	defer watch.Stop()
	event := <-watch.ResultChan()
	equal(t, event.Object.(*corev1.ConfigMap).Name, "between", "the first that is new")
}
