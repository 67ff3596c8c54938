module kindstack.dev/tools/language-nodejs

go 1.26.0

require github.com/pulumi/pulumi/sdk/v3 v3.50.0
