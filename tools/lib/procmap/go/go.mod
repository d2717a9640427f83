module procmap

go 1.19
