{{/* The names of the chosen kinds, as JSON: each has a file. A word is a name, or the beginning of one up to a dot. */}}
{{- define "kindstack.kinds" -}}
{{- $known := list -}}
{{- range $path, $_ := .Files.Glob "files/kinds/*.yaml" -}}
{{- $known = append $known (base $path | trimSuffix ".yaml") -}}
{{- end -}}
{{- $chosen := list -}}
{{- range $word := .Values.kinds -}}
{{- $found := list -}}
{{- range $known -}}
{{- if or (eq $word "all") (hasPrefix (printf "%s." $word) (printf "%s." .)) -}}
{{- $found = append $found . -}}
{{- end -}}
{{- end -}}
{{- if or (not $found) (and (ne $word "all") (gt (len $found) 1)) -}}
{{- fail (printf "kinds: %s must be one of %s" $word (join ", " (default $known $found))) -}}
{{- end -}}
{{- $chosen = concat $chosen $found -}}
{{- end -}}
{{- default $known $chosen | uniq | sortAlpha | toJson -}}
{{- end -}}

{{/* What the chosen kinds bring along, and what all kinds need, as a list. */}}
{{- define "kindstack.parts" -}}
{{- $files := list "files/all-kinds.yaml" -}}
{{- range include "kindstack.kinds" . | fromJsonArray -}}
{{- $files = append $files (printf "files/kinds/%s.yaml" .) -}}
{{- end -}}
{{- $parts := list -}}
{{- range $files -}}
{{- $parts = append $parts ($.Files.Get . | fromYaml) -}}
{{- end -}}
{{- $parts | toJson -}}
{{- end -}}

{{/* Without a kind that has a say in it, there is no admission. */}}
{{- define "kindstack.admission" -}}
{{- if .Values.admission -}}
{{- range include "kindstack.parts" . | fromJsonArray -}}
{{- if .admission -}}true{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The rest of an object's metadata, after its name. Takes `root`, and may take further `labels` and `annotations`. */}}
{{- define "kindstack.metadata" -}}
labels: {{- include "kindstack.labels" . | nindent 2 }}
{{- with merge (dict) (default (dict) .annotations) .root.Values.annotations }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The name of an object outside of the release's namespace: another installation's is another one. Takes `root`, `name`. */}}
{{- define "kindstack.nameOutside" -}}
{{- .name }}{{ if ne .root.Release.Namespace "kindstack-system" }}.{{ .root.Release.Namespace }}{{ end }}
{{- end -}}

{{/* The metadata of such an object. Takes `root`, `name`, and may take further `labels`. */}}
{{- define "kindstack.metadataOutside" -}}
{{- $labels := merge (dict "kindstack.dev/installed-in" .root.Release.Namespace) (default (dict) .labels) -}}
name: {{ include "kindstack.nameOutside" . }}
{{ include "kindstack.metadata" (dict "root" .root "labels" $labels) }}
{{- end -}}

{{/* A CRD or a policy, from a file. Takes `root`, `object`, and may take `annotations`. */}}
{{- define "kindstack.installed" -}}
apiVersion: {{ .object.apiVersion }}
kind: {{ .object.kind }}
metadata:
  {{- $named := dict "root" .root "name" .object.metadata.name }}
  {{- $isDefinition := eq .object.kind "CustomResourceDefinition" }}
  name: {{ $isDefinition | ternary .object.metadata.name (include "kindstack.nameOutside" $named) }}
  labels: {{- merge (dict "kindstack.dev/installed-in" .root.Release.Namespace) .object.metadata.labels .root.Values.labels | toYaml | nindent 4 }}
  {{- with merge (dict) (default (dict) .annotations) .root.Values.annotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
{{- $spec := .object.spec }}
{{- if $spec.policyName }}
{{- $policy := include "kindstack.nameOutside" (dict "root" .root "name" $spec.policyName) }}
{{- $spec = merge (dict "policyName" $policy) $spec }}
{{- end }}
{{- if $spec.paramRef }}
{{- $spec = merge (dict "paramRef" (dict "namespace" .root.Release.Namespace)) $spec }}
{{- end }}
spec: {{- toYaml $spec | nindent 2 }}
{{- end -}}

{{- define "kindstack.labels" -}}
{{- $own := dict "app.kubernetes.io/name" "kindstack" "app.kubernetes.io/part-of" "kindstack" -}}
{{- merge (dict) (default (dict) .labels) $own .root.Values.labels | toYaml -}}
{{- end -}}

{{/* The selector of Pods, by their component. */}}
{{- define "kindstack.selector" -}}
app.kubernetes.io/name: kindstack
app.kubernetes.io/component: {{ . }}
{{- end -}}

{{/* What Deployments have in common. Takes `root` and `component`. */}}
{{- define "kindstack.podMetadata" -}}
labels: {{- include "kindstack.labels" (dict "root" .root "labels" (include "kindstack.selector" .component | fromYaml)) | nindent 2 }}
{{- with .root.Values.podAnnotations }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "kindstack.pod" -}}
automountServiceAccountToken: true
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . | quote }}
  {{- end }}
{{- end }}
{{- end -}}

{{- define "kindstack.podSecurity" -}}
runAsNonRoot: true
{{- if .Values.fixedUserIds }}
runAsUser: 65532
runAsGroup: 65532
{{- end }}
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "kindstack.container" -}}
image: {{ .Values.image | quote }}
imagePullPolicy: {{ .Values.imagePullPolicy }}
# The first probe comes when the process listens, and waits for the rest: none fails at the start.
startupProbe:
  httpGet: { path: /healthz, port: http }
  initialDelaySeconds: 1
  periodSeconds: 1
  timeoutSeconds: 10
  failureThreshold: 60
livenessProbe:
  httpGet: { path: /healthz, port: http }
  periodSeconds: 20
  timeoutSeconds: 5
  failureThreshold: 3
readinessProbe:
  httpGet: { path: /readyz, port: http }
  periodSeconds: 5
  timeoutSeconds: 10
lifecycle:
  preStop:
    sleep:
      seconds: 5
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end -}}

{{/* With one Pod, anything stricter would keep a node from ever being drained. */}}
{{- define "kindstack.disruptionBudget" -}}
maxUnavailable: 1
unhealthyPodEvictionPolicy: AlwaysAllow
selector:
  matchLabels: {{- include "kindstack.selector" . | nindent 4 }}
{{- end -}}

{{/* Where roles are bound to. */}}
{{- define "kindstack.subjects" -}}
- kind: ServiceAccount
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace | quote }}
{{- end -}}
