// The plain alternative to Kindstack, for the benches: an operator for PostgresWriters, written with controller-runtime
// and its default settings as a tutorial would. It keeps no state and knows no order, preview, refusal of rows that
// are not its own, or repair.
package main

import (
	"context"
	"flag"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

const finalizer = "go-operator.bench/row"

type writerReconciler struct {
	client.Client
	pool *pgxpool.Pool
}

func (r *writerReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var writer PostgresWriter
	if err := r.Get(ctx, request.NamespacedName, &writer); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !writer.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.remove(ctx, &writer)
	}
	if controllerutil.AddFinalizer(&writer, finalizer) {
		if err := r.Update(ctx, &writer); err != nil {
			return ctrl.Result{}, err
		}
	}
	if err := r.upsert(ctx, &writer); err != nil {
		return ctrl.Result{}, err
	}
	writer.Status.ID = request.String()
	writer.Status.ObservedGeneration = writer.Generation
	meta.SetStatusCondition(&writer.Status.Conditions, metav1.Condition{
		Type:               "Ready",
		Status:             metav1.ConditionTrue,
		Reason:             "Written",
		Message:            "The row is as it should be.",
		ObservedGeneration: writer.Generation,
	})
	return ctrl.Result{}, r.Status().Update(ctx, &writer)
}

func (r *writerReconciler) upsert(ctx context.Context, writer *PostgresWriter) error {
	_, err := r.pool.Exec(ctx, "insert into "+table(writer)+` (id, name, age, country) values ($1, $2, $3, $4)
		on conflict (id) do update set name = excluded.name, age = excluded.age, country = excluded.country`,
		client.ObjectKeyFromObject(writer).String(), writer.Spec.Name, writer.Spec.Age, writer.Spec.Country)
	return err
}

func (r *writerReconciler) remove(ctx context.Context, writer *PostgresWriter) error {
	if !controllerutil.RemoveFinalizer(writer, finalizer) {
		return nil
	}
	key := client.ObjectKeyFromObject(writer).String()
	if _, err := r.pool.Exec(ctx, "delete from "+table(writer)+" where id = $1", key); err != nil {
		return err
	}
	return client.IgnoreNotFound(r.Update(ctx, writer))
}

func table(writer *PostgresWriter) string {
	return pgx.Identifier{writer.Spec.Table}.Sanitize()
}

func main() {
	probes := flag.String("health-probe-bind-address", "127.0.0.1:8081", "where /readyz is served")
	passOver := flag.Bool("pass-over-own-writes", false, "reconcile an object when its generation has changed only")
	flag.Parse() // controller-runtime has added --kubeconfig
	if err := run(ctrl.SetupSignalHandler(), *probes, *passOver); err != nil {
		ctrl.Log.Error(err, "the operator has failed")
		os.Exit(1)
	}
}

// The database is that of libpq's variables (PGHOST and so on).
func run(ctx context.Context, probes string, passOver bool) error {
	ctrl.SetLogger(zap.New())
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	version := schema.GroupVersion{Group: "demo.yash.com", Version: "v1"}
	scheme.AddKnownTypes(version, &PostgresWriter{}, &PostgresWriterList{})
	metav1.AddToGroupVersion(scheme, version)
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                 scheme,
		HealthProbeBindAddress: probes,
		Metrics:                server.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	if err := manager.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	pool, err := pgxpool.New(ctx, "")
	if err != nil {
		return err
	}
	defer pool.Close()
	var options []builder.ForOption
	if passOver {
		options = append(options, builder.WithPredicates(predicate.GenerationChangedPredicate{}))
	}
	reconciler := &writerReconciler{Client: manager.GetClient(), pool: pool}
	if err := ctrl.NewControllerManagedBy(manager).For(&PostgresWriter{}, options...).Complete(reconciler); err != nil {
		return err
	}
	return manager.Start(ctx)
}
