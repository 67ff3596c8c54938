module kindstack.dev/tools/kube-router

go 1.26.0

require github.com/cloudnativelabs/kube-router/v2 v2.1.0
