module example.net/module

go 1.26
