import type { input } from "@pulumi/kubernetes/types";
import type { Manifest, ObjectMeta } from "./types";

/** Kubernetes' own types that programs make, by `apiVersion/kind`. */
interface KnownTypes {
  "admissionregistration.k8s.io/v1/MutatingWebhookConfiguration": input.admissionregistration.v1.MutatingWebhookConfiguration;
  "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy": input.admissionregistration.v1.ValidatingAdmissionPolicy;
  "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicyBinding": input.admissionregistration.v1.ValidatingAdmissionPolicyBinding;
  "admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration": input.admissionregistration.v1.ValidatingWebhookConfiguration;
  "apiextensions.k8s.io/v1/CustomResourceDefinition": input.apiextensions.v1.CustomResourceDefinition;
  "apiregistration.k8s.io/v1/APIService": input.apiregistration.v1.APIService;
  "apps/v1/DaemonSet": input.apps.v1.DaemonSet;
  "apps/v1/Deployment": input.apps.v1.Deployment;
  "apps/v1/ReplicaSet": input.apps.v1.ReplicaSet;
  "apps/v1/StatefulSet": input.apps.v1.StatefulSet;
  "autoscaling/v2/HorizontalPodAutoscaler": input.autoscaling.v2.HorizontalPodAutoscaler;
  "batch/v1/CronJob": input.batch.v1.CronJob;
  "batch/v1/Job": input.batch.v1.Job;
  "discovery.k8s.io/v1/EndpointSlice": input.discovery.v1.EndpointSlice;
  "networking.k8s.io/v1/Ingress": input.networking.v1.Ingress;
  "networking.k8s.io/v1/IngressClass": input.networking.v1.IngressClass;
  "networking.k8s.io/v1/NetworkPolicy": input.networking.v1.NetworkPolicy;
  "policy/v1/PodDisruptionBudget": input.policy.v1.PodDisruptionBudget;
  "rbac.authorization.k8s.io/v1/ClusterRole": input.rbac.v1.ClusterRole;
  "rbac.authorization.k8s.io/v1/ClusterRoleBinding": input.rbac.v1.ClusterRoleBinding;
  "rbac.authorization.k8s.io/v1/Role": input.rbac.v1.Role;
  "rbac.authorization.k8s.io/v1/RoleBinding": input.rbac.v1.RoleBinding;
  "scheduling.k8s.io/v1/PriorityClass": input.scheduling.v1.PriorityClass;
  "storage.k8s.io/v1/StorageClass": input.storage.v1.StorageClass;
  "v1/ConfigMap": input.core.v1.ConfigMap;
  "v1/Endpoints": input.core.v1.Endpoints;
  "v1/LimitRange": input.core.v1.LimitRange;
  "v1/Namespace": input.core.v1.Namespace;
  "v1/PersistentVolume": input.core.v1.PersistentVolume;
  "v1/PersistentVolumeClaim": input.core.v1.PersistentVolumeClaim;
  "v1/Pod": input.core.v1.Pod;
  "v1/ResourceQuota": input.core.v1.ResourceQuota;
  "v1/Secret": input.core.v1.Secret;
  "v1/Service": input.core.v1.Service;
  "v1/ServiceAccount": input.core.v1.ServiceAccount;
}

type Fields<Type> = Type extends keyof KnownTypes
  ? Omit<KnownTypes[Type], "apiVersion" | "kind" | "metadata" | "status">
  : Manifest;

/**
 * A manifest whose fields the compiler knows by its `apiVersion` and `kind`: those of Kubernetes' own types, with outputs where
 * Pulumi takes them. Of any other type, such as a custom resource, a manifest may have all fields.
 */
export type ManifestOf<ApiVersion extends string, Kind extends string> = {
  apiVersion: ApiVersion;
  kind: Kind;
  metadata: ObjectMeta;
} & Fields<`${ApiVersion}/${Kind}`>;
