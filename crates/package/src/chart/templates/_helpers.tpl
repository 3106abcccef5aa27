{{/* What is set, over the defaults of this version of the chart. */}}
{{- define "OPERATOR.values" -}}
{{- mergeOverwrite (include "OPERATOR.defaults" . | fromYaml) (deepCopy .Values) | toYaml }}
{{- end }}

{{- define "OPERATOR.name" -}}
{{- default "OPERATOR" .Values.nameOverride | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "OPERATOR.fullname" -}}
{{- $name := include "OPERATOR.name" . }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "OPERATOR.selector" -}}
app.kubernetes.io/name: {{ include "OPERATOR.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: COMPONENT
{{- end }}

{{- define "OPERATOR.labels" -}}
{{- $v := include "OPERATOR.values" . | fromYaml }}
{{- include "OPERATOR.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with $v.labels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "OPERATOR.serviceAccount" -}}
{{- $v := include "OPERATOR.values" . | fromYaml }}
{{- if $v.serviceAccount.create }}
{{- default (include "OPERATOR.fullname" .) $v.serviceAccount.name }}
{{- else }}
{{- required "serviceAccount.name is needed if serviceAccount.create is false" $v.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "OPERATOR.image" -}}
{{- $v := include "OPERATOR.values" . | fromYaml }}
{{- if $v.image.digest }}
{{- printf "%s@%s" $v.image.repository $v.image.digest }}
{{- else }}
{{- printf "%s:%s" $v.image.repository (default .Chart.AppVersion $v.image.tag) }}
{{- end }}
{{- end }}

{{/* The metadata that all objects of a namespace have. */}}
{{- define "OPERATOR.metadata" -}}
{{- $v := include "OPERATOR.values" . | fromYaml -}}
namespace: {{ .Release.Namespace }}
labels:
  {{- include "OPERATOR.labels" . | nindent 2 }}
{{- with $v.annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
