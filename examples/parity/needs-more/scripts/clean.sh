rm -rf ./build
