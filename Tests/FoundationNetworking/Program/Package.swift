// swift-tools-version: 6.2
// A program that changes no line of its own or of its packages: it names Larkspur here.

import PackageDescription

let package = Package(
  name: "program",
  dependencies: [
    .package(path: "../larkspur"), .package(path: "../Untouched"),
    .package(url: "https://github.com/apple/swift-http-types", from: "1.0.0"),
  ],
  targets: [
    .target(
      name: "Loading",
      dependencies: [
        "Untouched", .product(name: "FoundationNetworking", package: "larkspur"),
        .product(name: "HTTPTypesFoundation", package: "swift-http-types"),
      ]),
    .executableTarget(
      name: "program", dependencies: ["Loading", .product(name: "Larkspur", package: "larkspur")]),
    .testTarget(name: "LoadingTests", dependencies: ["Loading", "Untouched"]),
  ]
)
