import Ground
import Logging
import NodeConfiguration
import Store
import Telemetry
import Testing
import Tiers

@Suite("Settings from flags, environment, file and defaults")
struct ConfigurationResolveTests {
    @Test("with nothing given, a node serves and fetches for this machine only")
    func defaultsAreForLoopback() throws {
        let configuration = try resolve()
        #expect(configuration.listen.map(\.description) == ["127.0.0.1:8080"])
        #expect(configuration.adminListen?.description == "127.0.0.1:8081")
        #expect(configuration.loops == nil)
        #expect(configuration.accessLog == .off)
        #expect(configuration.logLevel == .info)
        #expect(configuration.memoryLimit == 512 << 20)
        #expect(configuration.memoryEntries == 0)
        #expect(configuration.objectLimit == 64 << 20)
        #expect(configuration.defaultTTL == .seconds(3600))
        #expect(configuration.allowOrigin == [try #require(OriginPattern("*"))])
        #expect(configuration.allowPrivateOrigin.isEmpty)
        #expect(configuration.connectionsLimit == nil)
        #expect(configuration.originTotalTimeout == .seconds(600))
        #expect(configuration.warnings.isEmpty)
    }

    @Test("flags beat environment beats file beats default")
    func layersAreOrdered() throws {
        let flags = ["memory-limit": ["100MiB"]]
        let environment = ["NUTHATCH_MEMORY_LIMIT": "200MiB", "NUTHATCH_LOOPS": "2"]
        let file = "memory-limit: 300MiB\nloops: 3\nidle-timeout: 3s\n"
        let all = try resolve(flags: flags, environment: environment, file: file)
        #expect(all.memoryLimit == 100 << 20)
        #expect(all.loops == 2)
        #expect(all.idleTimeout == .seconds(3))
        #expect(try resolve(environment: environment, file: file).memoryLimit == 200 << 20)
        #expect(try resolve(file: file).memoryLimit == 300 << 20)
    }

    @Test("a list is taken whole from the first source that gives it, never merged")
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

    @Test("an empty variable counts as not given")
    func emptyVariablesAreNotGiven() throws {
        let environment = ["NUTHATCH_MEMORY_LIMIT": "", "NUTHATCH_LISTEN": " \n "]
        let configuration = try resolve(environment: environment, file: "memory-limit: 300MiB")
        #expect(configuration.memoryLimit == 300 << 20)
        #expect(configuration.listen.map(\.port) == [8080])
    }

    @Test("an empty flag is a value, and a bad one")
    func emptyFlagsAreGiven() {
        #expect(throws: ConfigurationErrors.self) { try resolve(flags: ["memory-limit": [""]]) }
    }

    @Test(
        "YAML's words and numbers are taken as they stand",
        arguments: [
            "access-log: off", "access-log: 'off'", "access-log: !!str off", "{access-log: off}",
        ])
    func scalarsAreTexts(file: String) throws {
        let environment = ["NUTHATCH_ADMIN_LISTEN": "off"]
        let configuration = try resolve(environment: environment, file: file)
        #expect(configuration.accessLog == .off)
        #expect(configuration.adminListen == nil)
        #expect(try resolve(file: "memory-entries: 010").memoryEntries == 10)
    }

    @Test("a file of nothing changes nothing", arguments: ["", "\n", "# note\n", "---\n", "{}"])
    func emptyFilesChangeNothing(file: String) throws {
        #expect(try resolve(file: file).memoryLimit == 512 << 20)
    }

    @Test("every choice of the table is taken, and its text is the choice again")
    func choicesAreTyped() throws {
        for key in Setting.sections.flatMap(\.keys) {
            for choice in key.setting.kind.choices {
                let entry = try key.entry(of: [(choice, .builtIn)], from: .builtIn)
                #expect(entry.texts == [choice])
            }
        }
        #expect(
            Setting.node.accessLog.setting.kind.choices
                == Configuration.AccessLogFormat.allCases.map(\.rawValue))
    }

    @Test("0 means none where there may be none, and so does off")
    func none() throws {
        let flags = [
            "loops": ["0"], "age-limit": ["0d"], "fence": ["off"], "origin-circuit-failures": ["0"],
        ]
        let configuration = try resolve(flags: flags)
        #expect(configuration.loops == nil && configuration.ageLimit == nil)
        #expect(configuration.fence == nil && configuration.originCircuitFailures == nil)
        let others = try resolve(flags: ["loops": ["3"], "age-limit": ["29s"], "fence": ["49s"]])
        #expect(others.loops == 3 && others.ageLimit == .seconds(29))
        #expect(others.fence == .seconds(49) && others.originCircuitFailures == 20)
    }

    @Test("a disk limit without room for four segments is refused with the number that has")
    func diskLimits() throws {
        let least = DiskPlan.limitBytesMin + JournalSpace.minimum.bytes
        let said = faults(flags: ["disk-limit": ["4MiB"]]).first
        #expect(said?.contains("at least \(least)B") == true)
        #expect(try resolve(flags: ["disk-limit": ["\(least)B"]]).diskLimit == Int(least))
        #expect(try resolve(flags: ["disk-limit": ["0"]]).diskLimit == 0)
    }

    @Test("a disk limit without a directory is said to have no effect")
    func diskWithoutDirectory() throws {
        let alone = try resolve(flags: ["disk-limit": ["8MiB"]])
        #expect(alone.warnings.count == 1 && alone.warnings[0].contains("cache-dir"))
        let both = try resolve(flags: ["disk-limit": ["8MiB"], "cache-dir": ["/tmp/a"]])
        #expect(both.warnings.isEmpty && both.cacheDir == "/tmp/a")
        #expect(try resolve(flags: ["disk-limit": ["0"]]).warnings.isEmpty)
    }

    @Test("the disk's queue holds a quarter of memory at most; 0 turns limit and touches off")
    func diskDefaults() throws {
        #expect(try resolve().diskQueueBytesMax == 32 << 20)
        #expect(try resolve(flags: ["memory-limit": ["16MiB"]]).diskQueueBytesMax == 4 << 20)
        let off = try resolve(flags: ["age-limit": ["0s"], "touch-interval": ["0s"]])
        #expect(off.ageLimit == nil && off.touchInterval == nil)
    }

    @Test("sizes that default follow the limit above them down")
    func defaultsFollow() throws {
        #expect(try resolve(flags: ["memory-limit": ["32MiB"]]).objectLimit == 32 << 20)
        #expect(try resolve(flags: ["request-head-limit": ["4KiB"]]).urlLimit == 4 << 10)
    }

    @Test(
        "a listen address beyond loopback needs allow-origin, from any source",
        arguments: ["0.0.0.0:80", "[::]:80", "192.0.2.1:80"])
    func openNodesAreToldTheirOrigins(listen: String) throws {
        let flags = ["listen": ["127.0.0.1:8080", listen]]
        #expect(throws: ConfigurationErrors.self) { try resolve(flags: flags) }
        let told = [
            try resolve(flags: flags.merging(["allow-origin": ["*"]]) { $1 }),
            try resolve(flags: flags, environment: ["NUTHATCH_ALLOW_ORIGIN": "*"]),
            try resolve(flags: flags, file: "allow-origin: '*'"),
        ]
        for configuration in told {
            #expect(configuration.allowOrigin.map(\.description) == ["*"])
        }
    }

    @Test("origins that are named are the only ones, on loopback too")
    func namedOriginsAreTheOnlyOnes() throws {
        let configuration = try resolve(
            environment: ["NUTHATCH_ALLOW_ORIGIN": "a.example *.b.example:81"])
        #expect(configuration.allowOrigin.map(\.description) == ["a.example", "*.b.example:81"])
        #expect(try resolve(file: "allow-origin: []").allowOrigin.isEmpty)
    }

    @Test("an unknown variable warns, naming the nearest; other programs' variables do not")
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
