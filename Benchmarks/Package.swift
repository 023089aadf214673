// swift-tools-version: 6.2
import PackageDescription

// A package of its own: one of its modules replaces malloc, which nothing else may link.

let settings: [SwiftSetting] = [
    .strictMemorySafety(),
    .enableExperimentalFeature("Lifetimes"),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
]

let package = Package(
    name: "Benchmarks",
    platforms: [.macOS(.v26)],
    products: [.executable(name: "microbench", targets: ["microbench"])],
    dependencies: [.package(name: "sluice", path: "..")],
    targets: [
        .target(name: "CMeasurement", cSettings: [.define("_GNU_SOURCE")]),
        .executableTarget(
            name: "microbench",
            dependencies: ["CMeasurement"]
                + [
                    "IPPacket", "DNSMessage", "LDNSMessage", "Provider", "DNSProxy", "EncryptedDNS", "WireGuard",
                    "OpenSSLCrypto",
                ].map { .product(name: $0, package: "sluice") },
            swiftSettings: settings),
    ]
)
