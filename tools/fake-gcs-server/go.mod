module kindstack.dev/tools/fake-gcs-server

go 1.26.0

require github.com/fsouza/fake-gcs-server v1.56.1
