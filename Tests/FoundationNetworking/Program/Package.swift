// swift-tools-version: 6.2
// A program that moves to Larkspur without a change to its sources or its packages: only this manifest names Larkspur.

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
