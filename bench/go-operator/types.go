package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// PostgresWriter is a row in a table, as Kindstack's CustomResourceDefinition has it.
type PostgresWriter struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              PostgresWriterSpec   `json:"spec"`
	Status            PostgresWriterStatus `json:"status,omitempty"`
}

type PostgresWriterSpec struct {
	Table   string `json:"table"`
	Name    string `json:"name"`
	Age     int32  `json:"age"`
	Country string `json:"country"`
}

type PostgresWriterStatus struct {
	ID                 string             `json:"id,omitempty"`
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

type PostgresWriterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PostgresWriter `json:"items"`
}

func (w *PostgresWriter) DeepCopyObject() runtime.Object {
	copied := w.deepCopy()
	return &copied
}

func (l *PostgresWriterList) DeepCopyObject() runtime.Object {
	copied := PostgresWriterList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		copied.Items = append(copied.Items, l.Items[i].deepCopy())
	}
	return &copied
}

func (w *PostgresWriter) deepCopy() PostgresWriter {
	copied := *w
	copied.ObjectMeta = *w.ObjectMeta.DeepCopy()
	copied.Status.Conditions = append([]metav1.Condition(nil), w.Status.Conditions...)
	return copied
}
