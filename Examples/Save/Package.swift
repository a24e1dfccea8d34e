// swift-tools-version: 6.2
// A command of one file without Foundation.

import PackageDescription

let package = Package(
  name: "save",
  dependencies: [.package(name: "larkspur", path: "../..")],
  targets: [
    .executableTarget(
      name: "save", dependencies: [.product(name: "LarkspurClient", package: "larkspur")],
      // LLVM's linker packs the addresses that the dynamic linker adjusts (glibc 2.36).
      linkerSettings: [
        .unsafeFlags([
          "-use-ld=lld", "-Xlinker", "--no-export-dynamic", "-Xlinker", "-z", "-Xlinker", "pack-relative-relocs",
        ])
      ])
  ]
)
