module example.org/procmap

go 1.19
