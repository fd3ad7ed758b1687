import Ground
import Logging
import Node
import Store
import Telemetry
import Testing
import Tiers

@Suite("Settings from flags, environment, file and defaults")
struct ConfigurationResolveTests {
    @Test("By default a node serves and fetches from this machine only")
    func defaultsAreForLoopback() throws {
        let configuration = try resolve()
        #expect(configuration.listen.map(\.description) == ["127.0.0.1:8080"])
        #expect(configuration.adminListen?.description == "127.0.0.1:8081")
        #expect(configuration.loops == nil)
        #expect(configuration.accessLog == .off)
        #expect(configuration.logLevel == .info)
        #expect(configuration.memoryBytesMax == 512 << 20)
        #expect(configuration.memoryEntriesMax == nil)
        #expect(configuration.objectBytesMax == 64 << 20)
        #expect(configuration.defaultTTL == .seconds(3600))
        #expect(configuration.allowOrigins == [try #require(OriginPattern("*"))])
        #expect(configuration.allowPrivateOrigins.isEmpty)
        #expect(configuration.connectionsMax == nil)
        #expect(configuration.originTotalTimeout == .seconds(600))
        #expect(configuration.warnings.isEmpty)
    }

    @Test("Flags override the environment, which overrides the file, which overrides defaults")
    func layersAreOrdered() throws {
        let flags = ["memory-limit": ["100MiB"]]
        let environment = ["NUTHATCH_MEMORY_LIMIT": "200MiB", "NUTHATCH_LOOPS": "2"]
        let file = "memory-limit: 300MiB\nloops: 3\nidle-timeout: 3s\n"
        let all = try resolve(flags: flags, environment: environment, file: file)
        #expect(all.memoryBytesMax == 100 << 20)
        #expect(all.loops == 2)
        #expect(all.idleTimeout == .seconds(3))
        #expect(try resolve(environment: environment, file: file).memoryBytesMax == 200 << 20)
        #expect(try resolve(file: file).memoryBytesMax == 300 << 20)
    }

    @Test("A list comes whole from the first source that has it, without merging")
    func listsAreNotMerged() throws {
        let environment = ["NUTHATCH_LISTEN": " 127.0.0.1:1 \n [::1]:2\t"]
        let file = "listen: [127.0.0.1:3, 127.0.0.1:4, 127.0.0.1:5]\n"
        let flags = ["listen": ["127.0.0.1:6"]]
        func ports(_ configuration: Configuration) -> [UInt16] {
            configuration.listen.map(\.port)
        }
        #expect(try ports(resolve(environment: environment, file: file)) == [1, 2])
        #expect(try ports(resolve(file: file)) == [3, 4, 5])
        #expect(try ports(resolve(file: "listen: 127.0.0.1:7\n")) == [7])
        #expect(try ports(resolve(flags: flags, environment: environment, file: file)) == [6])
    }

    @Test("An empty variable counts as absent")
    func emptyVariablesAreNotGiven() throws {
        let environment = ["NUTHATCH_MEMORY_LIMIT": "", "NUTHATCH_LISTEN": " \n "]
        let configuration = try resolve(environment: environment, file: "memory-limit: 300MiB")
        #expect(configuration.memoryBytesMax == 300 << 20)
        #expect(configuration.listen.map(\.port) == [8080])
    }

    @Test("An empty flag is a value, and an invalid one")
    func emptyFlagsAreGiven() {
        #expect(throws: ConfigurationErrors.self) { try resolve(flags: ["memory-limit": [""]]) }
    }

    @Test(
        "YAML's special words and numbers are read as text",
        arguments: [
            "access-log: off", "access-log: 'off'", "access-log: !!str off", "{access-log: off}",
        ])
    func scalarsAreTexts(file: String) throws {
        let environment = ["NUTHATCH_ADMIN_LISTEN": "off"]
        let configuration = try resolve(environment: environment, file: file)
        #expect(configuration.accessLog == .off)
        #expect(configuration.adminListen == nil)
        #expect(try resolve(file: "memory-entries: 010").memoryEntriesMax == 10)
    }

    @Test("An empty file changes nothing", arguments: ["", "\n", "# note\n", "---\n", "{}"])
    func emptyFilesChangeNothing(file: String) throws {
        #expect(try resolve(file: file).memoryBytesMax == 512 << 20)
    }

    @Test("Every choice in the table is a value of its type")
    func choicesAreTyped() throws {
        for setting in Setting.table {
            guard case .choice(let choices) = setting.kind else { continue }
            for choice in choices {
                _ = try resolve(flags: [setting.name.rawValue: [choice]])
            }
        }
        #expect(
            SettingName.accessLog.setting.kind
                == .choice(Configuration.AccessLogFormat.allCases.map(\.rawValue)))
    }

    /// A numeric setting, a text for it, and the only property that it may set.
    private static let properties: [(SettingName, text: String, property: String, Int64)] = [
        (.loops, "3", "loops", 3),
        (.drainTimeout, "4s", "drainTimeout", 4_000_000_000),
        (.memoryLimit, "65MiB", "memoryBytesMax", 65 << 20),
        (.memoryEntries, "6", "memoryEntriesMax", 6),
        (.objectLimit, "7KiB", "objectBytesMax", 7 << 10),
        (.variantsLimit, "9", "variantsMax", 9),
        (.defaultTTL, "8s", "defaultTTL", 8_000_000_000),
        (.diskLimit, "28MiB", "diskBytesMax", 28 << 20),
        (.ageLimit, "29s", "ageLimit", 29_000_000_000),
        (.touchInterval, "30s", "touchInterval", 30_000_000_000),
        (.diskQueueLimit, "3MiB", "diskQueueBytesMax", 3 << 20),
        (.diskThreads, "31", "diskThreads", 31),
        (.pixelLimit, "32", "pixelsMax", 32),
        (.originRedirects, "6", "originRedirectsMax", 6),
        (.originConnections, "33", "originConnectionsMax", 33),
        (.originQueueLimit, "34", "originQueueMax", 34),
        (.originQueueTimeout, "35s", "originQueueTimeout", 35_000_000_000),
        (.originCircuitFailures, "36", "originCircuitFailures", 36),
        (.originCircuitTime, "37s", "originCircuitTime", 37_000_000_000),
        (.originFieldsLimit, "38", "originFieldsMax", 38),
        (.originBodyLimit, "39MiB", "originBodyBytesMax", 39 << 20),
        (.dnsTTL, "40s", "dnsTTL", 40_000_000_000),
        (.dnsFailureTTL, "41s", "dnsFailureTTL", 41_000_000_000),
        (.dnsNamesLimit, "42", "dnsNamesMax", 42),
        (.waitTimeout, "43s", "waitTimeout", 43_000_000_000),
        (.originConnectTimeout, "9s", "originConnectTimeout", 9_000_000_000),
        (.originFirstByteTimeout, "10s", "originFirstByteTimeout", 10_000_000_000),
        (.originIdleTimeout, "11s", "originIdleTimeout", 11_000_000_000),
        (.originTotalTimeout, "12s", "originTotalTimeout", 12_000_000_000),
        (.originKeepalive, "13s", "originKeepalive", 13_000_000_000),
        (.originIdleConnections, "14", "originIdleConnectionsMax", 14),
        (.originHeadLimit, "15KiB", "originHeadBytesMax", 15 << 10),
        (.fillsLimit, "16", "fetchesMax", 16),
        (.clientShare, "54", "clientPercent", 54),
        (.originShare, "55", "originPercent", 55),
        (.clientUnreadLimit, "58KiB", "clientUnreadBytesMax", 58 << 10),
        (.originMinRate, "56KiB", "originRateMin", 56 << 10),
        (.bodyMinRate, "57KiB", "bodyRateMin", 57 << 10),
        (.waitersLimit, "17", "waitersMax", 17),
        (.connectionsLimit, "18", "connectionsMax", 18),
        (.connectionsPerClient, "17", "connectionsPerClient", 17),
        (.pipelineLimit, "19KiB", "pipelineBytesMax", 19 << 10),
        (.requestHeadLimit, "20KiB", "requestHeadBytesMax", 20 << 10),
        (.requestFieldsLimit, "21", "requestFieldsMax", 21),
        (.requestBodyLimit, "22KiB", "requestBodyBytesMax", 22 << 10),
        (.urlLimit, "2KiB", "urlBytesMax", 2 << 10),
        (.rangesLimit, "23", "rangesMax", 23),
        (.idleTimeout, "24s", "idleTimeout", 24_000_000_000),
        (.headTimeout, "25s", "headTimeout", 25_000_000_000),
        (.bodyTimeout, "26s", "bodyTimeout", 26_000_000_000),
        (.sendTimeout, "27s", "sendTimeout", 27_000_000_000),
        (.streamsLimit, "44", "streamsMax", 44),
        (.tlsHandshakeTimeout, "45s", "handshakeTimeout", 45_000_000_000),
        (.tlsHandshakesLimit, "46", "handshakesMax", 46),
        (.replicas, "3", "replicas", 3),
        (.ringWeight, "47", "weight", 47),
        (.ringWeightLimit, "50", "weightMax", 50),
        (.handOverTimeout, "48s", "handoffTimeout", 48_000_000_000),
        (.fence, "49s", "fence", 49_000_000_000),
        (.forgetAfter, "61s", "forgetAfter", 61_000_000_000),
        (.expect, "51", "expectedMembers", 51),
        (.joinTimeout, "52s", "joinTimeout", 52_000_000_000),
    ]

    @Test("Each numeric setting sets its own property", arguments: properties)
    func settingsFillTheirProperties(
        name: SettingName, text: String, property: String, number: Int64
    ) throws {
        let configuration = try resolve(flags: [name.rawValue: [text]])
        let all: [Any] = [configuration, configuration.tls, configuration.cluster]
        let child = all.flatMap { Mirror(reflecting: $0).children }.first { $0.label == property }
        switch child?.value {
        case let value as Int: #expect(Int64(value) == number)
        case let value as UInt16: #expect(Int64(value) == number)
        case let value as UInt64: #expect(value == UInt64(number))
        case let value as Interval?: #expect(value?.nanoseconds == number)
        case let value as Interval: #expect(value.nanoseconds == number)
        default: Issue.record("\(property) is \(String(describing: child?.value))")
        }
    }

    @Test("Every numeric setting is in that table")
    func everyNumberIsHeld() {
        for setting in Setting.table {
            switch setting.kind {
            case .bytes, .duration, .durationOrOff, .count:
                #expect(Self.properties.contains { $0.0 == setting.name }, "\(setting.name)")
            default: continue
            }
        }
    }

    @Test("A disk limit too small for four segments is refused with the minimum")
    func diskLimits() throws {
        let least = DiskPlan.limitBytesMin + JournalSpace.minimum.bytes
        let fault = faults(flags: ["disk-limit": ["4MiB"]]).first
        #expect(fault?.contains("at least \(least)B") == true)
        #expect(try resolve(flags: ["disk-limit": ["\(least)B"]]).diskBytesMax == least)
        #expect(try resolve(flags: ["disk-limit": ["0"]]).diskBytesMax == 0)
    }

    @Test("A disk limit without a directory is reported as without effect")
    func diskWithoutDirectory() throws {
        let alone = try resolve(flags: ["disk-limit": ["8MiB"]])
        #expect(alone.warnings.count == 1 && alone.warnings[0].contains("cache-dir"))
        let both = try resolve(flags: ["disk-limit": ["8MiB"], "cache-dir": ["/tmp/a"]])
        #expect(both.warnings.isEmpty && both.cacheDirectory == "/tmp/a")
        #expect(try resolve(flags: ["disk-limit": ["0"]]).warnings.isEmpty)
    }

    @Test("The disk queue holds at most a quarter of memory; 0 disables age limit and touches")
    func diskDefaults() throws {
        #expect(try resolve().diskQueueBytesMax == 32 << 20)
        #expect(try resolve(flags: ["memory-limit": ["16MiB"]]).diskQueueBytesMax == 4 << 20)
        let off = try resolve(flags: ["age-limit": ["0s"], "touch-interval": ["0s"]])
        #expect(off.ageLimit == nil && off.touchInterval == nil)
    }

    @Test("Defaults that follow a lower limit become lower with it")
    func defaultsFollow() throws {
        #expect(try resolve(flags: ["memory-limit": ["32MiB"]]).objectBytesMax == 32 << 20)
        #expect(try resolve(flags: ["request-head-limit": ["4KiB"]]).urlBytesMax == 4 << 10)
    }

    @Test(
        "A listen address beyond loopback requires allow-origin, from any source",
        arguments: ["0.0.0.0:80", "[::]:80", "192.0.2.1:80"])
    func openNodesAreToldTheirOrigins(listen: String) throws {
        let flags = ["listen": ["127.0.0.1:8080", listen]]
        #expect(throws: ConfigurationErrors.self) { try resolve(flags: flags) }
        let configurations = [
            try resolve(flags: flags.merging(["allow-origin": ["*"]]) { $1 }),
            try resolve(flags: flags, environment: ["NUTHATCH_ALLOW_ORIGIN": "*"]),
            try resolve(flags: flags, file: "allow-origin: '*'"),
        ]
        for configuration in configurations {
            #expect(configuration.allowOrigins.map(\.description) == ["*"])
        }
    }

    @Test("Configured origins are the only ones allowed, on loopback too")
    func namedOriginsAreTheOnlyOnes() throws {
        let configuration = try resolve(
            environment: ["NUTHATCH_ALLOW_ORIGIN": "a.example *.b.example:81"])
        #expect(configuration.allowOrigins.map(\.description) == ["a.example", "*.b.example:81"])
        #expect(try resolve(file: "allow-origin: []").allowOrigins.isEmpty)
    }

    @Test("An unknown variable causes a warning with the nearest name; others' variables do not")
    func unknownVariablesWarn() throws {
        let environment = [
            "NUTHATCH_PORT": "tcp://10.0.0.1:80", "NUTHATCH_MEMORY_LIMT": "1GiB", "PATH": "/bin",
            "NUTHATCHES": "2", "NUTHATCH_LOOPS": "1",
        ]
        #expect(
            try resolve(environment: environment).warnings == [
                "environment \"NUTHATCH_MEMORY_LIMT\" is not a setting; "
                    + "perhaps NUTHATCH_MEMORY_LIMIT",
                "environment \"NUTHATCH_PORT\" is not a setting",
            ])
    }
}
