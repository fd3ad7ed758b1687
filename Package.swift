// swift-tools-version: 6.3
import PackageDescription

/// Every room is compiled with the same settings; a warning is an error.
let common: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .strictMemorySafety(),
    .treatAllWarnings(as: .error),
]

/// Tests are compiled without optimisation in every configuration, except those that run longer
/// without it than the compiler takes.
let unoptimised: [SwiftSetting] =
    common + [
        .unsafeFlags(["-Onone", "-no-emit-module-separately-wmo"], .when(configuration: .release))
    ]
let optimised: [SwiftSetting] = common + [.unsafeFlags(["-O"], .when(configuration: .debug))]
let longRunning: Set = ["StoreTests", "TiersTests", "TidyTests"]

/// `NUTHATCH_FUZZ=1` (set by deploy/fuzz) adds the program `fuzz` and compiles every room, and the
/// fuzz targets, with coverage for libFuzzer.
let fuzzing = Context.environment["NUTHATCH_FUZZ"] == "1"
let coverage: [SwiftSetting] =
    fuzzing ? [.unsafeFlags(["-sanitize=fuzzer,address", "-parse-as-library"])] : []

let nioCore = Target.Dependency.product(name: "NIOCore", package: "swift-nio")
let nioPosix = Target.Dependency.product(name: "NIOPosix", package: "swift-nio")
let nioHTTP1 = Target.Dependency.product(name: "NIOHTTP1", package: "swift-nio")
let nioEmbedded = Target.Dependency.product(name: "NIOEmbedded", package: "swift-nio")
let logging = Target.Dependency.product(name: "Logging", package: "swift-log")
let lifecycle = Target.Dependency.product(
    name: "ServiceLifecycle", package: "swift-service-lifecycle")
let signals = Target.Dependency.product(name: "UnixSignals", package: "swift-service-lifecycle")
let yams = Target.Dependency.product(name: "Yams", package: "Yams")
let structuredFields = Target.Dependency.product(
    name: "RawStructuredFieldValues", package: "swift-http-structured-headers")
let arguments = Target.Dependency.product(name: "ArgumentParser", package: "swift-argument-parser")

func room(_ name: String, uses: [String], _ packages: [Target.Dependency] = []) -> Target {
    .target(
        name: name,
        dependencies: uses.map { .init(stringLiteral: $0) } + packages,
        resources: resources[name] ?? [],
        swiftSettings: common + coverage)
}

func program(_ name: String, uses: [String], _ packages: [Target.Dependency] = []) -> Target {
    .executableTarget(
        name: name,
        dependencies: uses.map { .init(stringLiteral: $0) } + packages,
        swiftSettings: common)
}

/// The resources of targets.
let resources: [String: [Resource]] = [
    "ClientTests": [.copy("Console/Screens")],
    "ServingTests": [.copy("Scripts")],
    "TiersTests": [.copy("Traces"), .copy("Vectors")],
    "OutsideTests": [
        .copy("Sites/Table"), .copy("Admin/Dashboard/Looks"), .copy("Guide/Session"),
    ],
]

func tests(_ name: String, of uses: [String], _ packages: [Target.Dependency] = []) -> Target {
    .testTarget(
        name: name,
        dependencies: uses.map { .init(stringLiteral: $0) } + packages,
        resources: resources[name] ?? [],
        swiftSettings: longRunning.contains(name) ? optimised : unoptimised)
}

let package = Package(
    name: "nuthatch",
    products: [.executable(name: "nuthatch", targets: ["nuthatch"])],
    dependencies: [
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
        .package(url: "https://github.com/jpsim/Yams", from: "6.2.2"),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-http-structured-headers", from: "1.7.0"),
    ],
    targets: [
        .target(name: "CLinux"),
        .target(name: "CDashboard", exclude: ["Page"]),
        .systemLibrary(
            name: "CNgHTTP2", pkgConfig: "libnghttp2", providers: [.apt(["libnghttp2-dev"])]),
        .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),

        room("Ground", uses: []),
        room("HTTPRules", uses: ["Ground"], [structuredFields]),
        room("Cluster", uses: ["Ground"]),
        room("Tiers", uses: ["Ground"]),
        room("Serving", uses: ["Ground", "HTTPRules", "Cluster", "Tiers"]),
        room("Telemetry", uses: ["Ground"]),
        room(
            "Wire", uses: ["Ground", "HTTPRules", "CNgHTTP2", "COpenSSL"],
            [nioCore, structuredFields]),
        room("Admin", uses: ["Ground", "HTTPRules", "Telemetry"]),
        room("Store", uses: ["Ground", "Tiers", "Telemetry", "CLinux"], [nioCore, nioPosix]),
        room("Origin", uses: ["Ground", "HTTPRules", "Wire", "Telemetry"], [nioCore, nioPosix]),
        room("Platform", uses: ["Ground", "CLinux"], [nioCore, nioPosix]),
        room(
            "NodeConfiguration",
            uses: [
                "Ground", "HTTPRules", "Cluster", "Tiers", "Telemetry", "Wire", "Admin", "Store",
                "Origin",
            ],
            [nioCore, logging, yams]),
        room(
            "Peering",
            uses: [
                "Ground", "HTTPRules", "Cluster", "Tiers", "Serving", "Telemetry", "Wire", "Store",
                "Origin", "Platform", "NodeConfiguration",
            ],
            [nioCore, nioPosix, logging]),
        room(
            "Front",
            uses: [
                "Ground", "HTTPRules", "Cluster", "Tiers", "Serving", "Telemetry", "Wire", "Admin",
                "Store", "Origin", "Platform", "NodeConfiguration", "Peering", "CDashboard",
            ],
            [nioCore, nioPosix, logging]),
        room(
            "Node",
            uses: [
                "Ground", "HTTPRules", "Cluster", "Tiers", "Telemetry", "Wire", "Admin", "Store",
                "Origin", "Platform", "NodeConfiguration", "Peering", "Front",
            ],
            [nioCore, nioPosix, logging, lifecycle, signals]),
        room("Client", uses: ["Ground", "HTTPRules", "Telemetry", "Wire", "Admin"], [nioCore]),
        room("Simulation", uses: ["Ground", "HTTPRules", "Cluster", "Tiers", "Serving"]),

        program(
            "nuthatch", uses: ["Telemetry", "Platform", "NodeConfiguration", "Node", "Client"],
            [arguments]),
        program(
            "nuthatch-sim", uses: ["Ground", "Cluster", "Tiers", "Serving", "Simulation"],
            [arguments]),
        program(
            "nuthatch-bench",
            uses: ["Ground", "HTTPRules", "Tiers", "Serving", "Wire", "Store", "Harness"],
            [arguments, nioCore, nioPosix]),

        tests("TidyTests", of: []),
        tests("GroundTests", of: ["Ground"]),
        tests("HTTPRulesTests", of: ["HTTPRules", "Ground", "Trials"]),
        tests("ClusterTests", of: ["Cluster", "Ground", "Trials"]),
        tests("TiersTests", of: ["Tiers", "Simulation", "Ground", "Trials"]),
        tests(
            "ServingTests", of: ["Serving", "Simulation", "HTTPRules", "Tiers", "Ground", "Trials"]),
        tests("SimulationTests", of: ["Simulation", "Cluster", "Ground", "Trials"]),
        tests("TelemetryTests", of: ["Telemetry", "Ground"], [yams]),
        tests(
            "WireTests", of: ["Wire", "HTTPRules", "Ground", "COpenSSL", "Certificates", "Trials"],
            [nioCore, nioHTTP1, nioEmbedded]),
        tests("AdminTests", of: ["Admin", "HTTPRules", "Telemetry", "Ground"]),
        tests("StoreTests", of: ["Store", "Tiers", "Ground", "Trials"], [nioCore, nioPosix]),
        tests(
            "OriginTests",
            of: ["Origin", "Wire", "HTTPRules", "Ground", "Harness", "Certificates", "Trials"],
            [nioCore, nioPosix]),
        tests(
            "NodeConfigurationTests",
            of: [
                "NodeConfiguration", "Store", "Tiers", "Cluster", "Telemetry", "HTTPRules",
                "Ground", "Harness",
            ],
            [logging]),
        tests(
            "NodeTests",
            of: [
                "Node", "Front", "Peering", "Platform", "NodeConfiguration", "Store", "Admin",
                "Telemetry", "HTTPRules", "Cluster", "Tiers", "Ground", "Harness",
            ],
            [nioCore, nioPosix, logging]),
        tests("ClientTests", of: ["Client", "Admin", "HTTPRules", "Telemetry", "Ground"]),
        tests(
            "CommandTests",
            of: ["Node", "NodeConfiguration", "Telemetry", "Simulation", "Ground", "Harness"]),
        tests(
            "OutsideTests",
            of: ["Harness", "Certificates", "Trials", "Cluster", "Tiers", "Wire", "Ground"],
            [nioCore, nioPosix]),
        .target(
            name: "Fuzzers",
            dependencies: [
                "NodeConfiguration", "Admin", "Serving", "Tiers", "Cluster", "Wire", "HTTPRules",
                "Telemetry", "Ground", "COpenSSL", nioCore,
            ],
            path: "Tests/Fuzzers",
            swiftSettings: fuzzing ? common + coverage : unoptimised),
        tests("FuzzerTests", of: ["Fuzzers", "Ground", "Trials"]),
        .target(name: "Trials", path: "Tests/Trials", swiftSettings: unoptimised),
        .target(
            name: "Certificates", dependencies: ["Wire", "COpenSSL"], path: "Tests/Certificates",
            swiftSettings: unoptimised),
        .target(
            name: "Harness", dependencies: [nioCore, nioPosix], path: "Tests/Harness",
            swiftSettings: common),
    ],
    // For #embed.
    cLanguageStandard: .c2x
)

/// `NUTHATCH_TESTS=rooms` (set by `deploy/test unit`) leaves out the programs, and the tests that
/// start them.
if Context.environment["NUTHATCH_TESTS"] == "rooms" {
    package.products = []
    package.targets.removeAll {
        $0.type == .executable || ["CommandTests", "OutsideTests"].contains($0.name)
    }
}

if fuzzing {
    package.targets.append(
        .executableTarget(
            name: "fuzz", dependencies: ["Fuzzers"], path: "Tests/FuzzProgram",
            swiftSettings: common + coverage,
            linkerSettings: [.unsafeFlags(["-sanitize=fuzzer,address"])]))
}
