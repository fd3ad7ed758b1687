{{- define "nuthatch.name" -}}
{{- if contains "nuthatch" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}{{ printf "%s-nuthatch" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "nuthatch.labels" -}}
app.kubernetes.io/name: nuthatch
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "nuthatch.configMap" -}}
{{- .Values.configMap | default (include "nuthatch.name" .) }}
{{- end }}
