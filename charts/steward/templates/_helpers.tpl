{{- define "steward.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "steward.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- $name := include "steward.name" . }}
{{- if contains $name .Release.Name }}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}
{{- end }}

{{- define "steward.common" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{- define "steward.selector" -}}
app.kubernetes.io/name: {{ include "steward.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: controller-manager
{{- end }}

{{- define "steward.labels" -}}
{{ include "steward.common" . }}
{{ include "steward.selector" . }}
{{- end }}

{{- define "steward.gateway.selector" -}}
app.kubernetes.io/name: {{ include "steward.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: gateway
{{- end }}

{{- define "steward.gateway.labels" -}}
{{ include "steward.common" . }}
{{ include "steward.gateway.selector" . }}
{{- end }}

{{- define "steward.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "steward.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "steward.image" -}}
{{- printf "%s:%s" .image.repository (default .root.Chart.AppVersion .image.tag) }}
{{- end }}

{{- /* Who may read metrics. */}}
{{- define "steward.observers" -}}
- podSelector: {}
- namespaceSelector:
    matchLabels:
      steward.butlerlabs.dev/metrics: "true"
{{- end }}

{{- /* Names are looked up at pods, or at a cache on the node with a link-local address. */}}
{{- define "steward.dns" -}}
- to:
    - namespaceSelector: {}
    - ipBlock:
        cidr: 169.254.0.0/16
  ports:
    - port: 53
      protocol: UDP
    - port: 53
      protocol: TCP
{{- end }}

{{- /* The number after the last colon of ":8080" or "127.0.0.1:8080". */}}
{{- define "steward.port" -}}
{{- splitList ":" . | last }}
{{- end }}
