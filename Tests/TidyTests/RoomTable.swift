import Testing

/// What one target of the package may use (Design, "Rooms").
struct Room: Sendable, CustomTestStringConvertible {
    /// What may be called in a target.
    enum Kind: Sendable {
        /// No I/O, clock, dice, locks, logger, Foundation, C, nor `unsafe`.
        case pure
        /// Pure, but for atomics.
        case atomics
        case rendering
        case sansIO
        case edge
        case program
        /// Repeats a run from its seed: no clock, and no dice but those.
        case simulation
        case testSupport
        /// Module maps and C; no Swift to be held.
        case c
        case test
    }

    let name: String
    let kind: Kind
    let uses: Set<String>
    /// Products of packages.
    let packages: Set<String>
    /// Modules of the toolchain, beyond the standard library.
    let toolchain: Set<String>

    init(
        _ name: String, _ kind: Kind, uses: Set<String> = [], packages: Set<String> = [],
        toolchain: Set<String> = []
    ) {
        self.name = name
        self.kind = kind
        self.uses = uses
        self.packages = packages
        self.toolchain = toolchain
    }

    var testDescription: String { name }

    /// Every target that is not a test, once.
    static let table: [Room] = cRooms + pureRooms + edgeRooms + programs + testSupport

    private static let cRooms = ["CDashboard", "CLinux", "CNgHTTP2", "COpenSSL"]
        .map { Room($0, .c) }

    private static let pureRooms = [
        Room("Ground", .pure),
        Room("HTTPRules", .pure, uses: ["Ground"], packages: ["RawStructuredFieldValues"]),
        Room("Cluster", .pure, uses: ["Ground"]),
        Room("Tiers", .pure, uses: ["Ground"]),
        Room("Serving", .pure, uses: ["Ground", "HTTPRules", "Cluster", "Tiers"]),
        Room("Telemetry", .atomics, uses: ["Ground"], toolchain: ["Synchronization"]),
        Room("Admin", .rendering, uses: ["Ground", "HTTPRules", "Telemetry"]),
    ]

    private static let edgeRooms = [
        Room(
            "Wire", .sansIO, uses: ["Ground", "HTTPRules", "CNgHTTP2", "COpenSSL"],
            packages: ["NIOCore", "RawStructuredFieldValues"]),
        Room(
            "Store", .edge, uses: ["Ground", "Tiers", "Telemetry", "CLinux"],
            packages: ["NIOCore", "NIOPosix"], toolchain: ["Synchronization", "Glibc"]),
        Room(
            "Origin", .edge, uses: ["Ground", "HTTPRules", "Wire", "Telemetry"],
            packages: ["NIOCore", "NIOPosix"], toolchain: ["Synchronization", "Glibc"]),
        Room(
            "Platform", .edge, uses: ["Ground", "CLinux"], packages: ["NIOCore", "NIOPosix"],
            toolchain: ["Synchronization", "Glibc"]),
        Room(
            "NodeConfiguration", .edge,
            uses: [
                "Ground", "HTTPRules", "Cluster", "Tiers", "Telemetry", "Wire", "Admin", "Store",
                "Origin",
            ],
            packages: ["NIOCore", "Logging", "Yams"],
            toolchain: ["Glibc", "FoundationEssentials"]),
        Room(
            "Peering", .edge,
            uses: [
                "Ground", "HTTPRules", "Cluster", "Tiers", "Serving", "Telemetry", "Wire", "Store",
                "Origin", "Platform", "NodeConfiguration",
            ],
            packages: ["NIOCore", "NIOPosix", "Logging"], toolchain: ["Synchronization"]),
        Room(
            "Front", .edge,
            uses: [
                "Ground", "HTTPRules", "Cluster", "Tiers", "Serving", "Telemetry", "Wire", "Admin",
                "Store", "Origin", "Platform", "NodeConfiguration", "Peering", "CDashboard",
            ],
            packages: ["NIOCore", "NIOPosix", "Logging"],
            toolchain: ["Synchronization", "Glibc", "FoundationEssentials"]),
        Room(
            "Node", .edge,
            uses: [
                "Ground", "HTTPRules", "Cluster", "Tiers", "Telemetry", "Wire", "Admin", "Store",
                "Origin", "Platform", "NodeConfiguration", "Peering", "Front",
            ],
            packages: ["NIOCore", "NIOPosix", "Logging", "ServiceLifecycle", "UnixSignals"],
            toolchain: ["Synchronization", "Glibc"]),
        Room(
            "Client", .edge, uses: ["Ground", "HTTPRules", "Telemetry", "Wire", "Admin"],
            packages: ["NIOCore"], toolchain: ["Synchronization", "Glibc", "FoundationEssentials"]),
    ]

    private static let programs = [
        Room(
            "nuthatch", .program,
            uses: ["Telemetry", "Platform", "NodeConfiguration", "Node", "Client"],
            packages: ["ArgumentParser"],
            toolchain: ["Foundation"]),
        Room(
            "nuthatch-sim", .program,
            uses: ["Ground", "Cluster", "Tiers", "Serving", "Simulation"],
            packages: ["ArgumentParser"], toolchain: ["Foundation", "Glibc"]),
        Room(
            "nuthatch-bench", .program,
            uses: ["Ground", "HTTPRules", "Tiers", "Serving", "Wire", "Store", "Harness"],
            packages: ["ArgumentParser", "NIOCore", "NIOPosix"],
            toolchain: ["Foundation", "Glibc", "Synchronization"]),
    ]

    private static let testSupport = [
        Room(
            "Simulation", .simulation,
            uses: ["Ground", "HTTPRules", "Cluster", "Tiers", "Serving"],
            toolchain: ["Foundation"]),
        Room(
            "Fuzzers", .testSupport,
            uses: [
                "NodeConfiguration", "Admin", "Serving", "Tiers", "Cluster", "Wire", "HTTPRules",
                "Telemetry", "Ground", "COpenSSL",
            ],
            packages: ["NIOCore"], toolchain: ["FoundationEssentials"]),
        Room("Trials", .testSupport, toolchain: ["Foundation"]),
        Room("Certificates", .testSupport, uses: ["Wire", "COpenSSL"]),
        Room(
            "Harness", .testSupport, packages: ["NIOCore", "NIOPosix"],
            toolchain: ["Foundation", "Glibc", "Synchronization"]),
    ]
}
