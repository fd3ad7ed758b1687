import Admin
import Telemetry
import Testing

@Suite("Documents of the admin port")
struct DocumentTests {
    private static let id = String(repeating: "0a", count: 16)

    @Test("Health is ok, and only a ready node accepts requests")
    func health() {
        #expect(HealthDocument.alive.text == "{\"status\":\"ok\"}\n")
        #expect(ShapeCheck.faults(HealthDocument.alive, .getHealth) == [])
        for (readiness, status) in zip(
            Readiness.allCases, [503, 503, 200, 503] as [UInt16])
        {
            let document = HealthDocument.json(readiness, isFenced: false)
            #expect(HealthDocument.status(readiness) == status)
            #expect(document.text == "{\"status\":\"\(readiness)\"}\n")
            #expect(ShapeCheck.faults(document, .getReadiness, status) == [])
        }
        let fenced = HealthDocument.json(.ready, isFenced: true)
        #expect(fenced.text == "{\"status\":\"ready\",\"fenced\":true}\n")
        #expect(ShapeCheck.faults(fenced, .getReadiness) == [])
    }

    @Test("Origins are listed with their circuits")
    func origins() {
        let row = OriginDocument(
            origin: "a.example:80", connections: 3, idle: 1, waiting: 2, circuit: "open",
            failures: 20, retryAfterMilliseconds: 4000)
        let document = OriginDocument.json([row])
        #expect(
            document.text == """
                {"origins":[
                {"origin":"a.example:80","connections":3,"idle":1,"waiting":2,"circuit":"open",\
                "failures":20,"retry_after_ms":4000}
                ]}

                """)
        #expect(ShapeCheck.faults(document, .listOrigins) == [])
        #expect(ShapeCheck.faults(OriginDocument.json([]), .listOrigins) == [])
    }

    @Test("Members are listed with their ownership and unconfirmed purges")
    func members() {
        let row = MemberDocument(
            node: Self.id, process: Self.id, address: "10.0.0.1:8082", state: "alive",
            isVoter: true, millisecondsSinceContact: 0, weight: 1000, effectiveWeight: 400,
            isCaughtUp: true, isDraining: false, isSelf: true, isConnected: true,
            primaryShare: 0.05,
            lagRecords: 7)
        let document = MemberDocument.json([row])
        #expect(
            document.text == """
                {"members":[
                {"node":"\(Self.id)","process":"\(Self.id)","address":"10.0.0.1:8082",\
                "state":"alive","counted":true,"contact_ms_ago":0,\
                "self":true,"connected":true,"caught_up":true,"draining":false,"weight":1000,\
                "weight_counted":400,"ring_share":0.05,"lag_records":7}
                ]}

                """)
        #expect(ShapeCheck.faults(document, .listMembers) == [])
        #expect(MemberDocument.json([]).text == "{\"members\":[]}\n")
    }

    @Test("A node's status has null for absent values")
    func status() {
        let snapshot = MetricsSnapshot(loops: [], node: NodeCounters())
        for isWhole in [true, false] {
            let document = StatusDocument(
                node: Self.id, process: Self.id, version: "1.0.0", uptimeMilliseconds: 5,
                role: .purge, readiness: .ready, fencedMilliseconds: isWhole ? nil : 7,
                snapshot: snapshot, hasDisk: isWhole, isInCluster: isWhole, unreachableSeeds: [],
                receiptsPending: 2, sites: ["a.example"])
            #expect(ShapeCheck.faults(document.json, .getStatus) == [])
            #expect(document.json["fenced"] == .bool(!isWhole))
            #expect((document.json["disk"] == .null) == !isWhole)
            #expect((document.json["cluster"] == .null) == !isWhole)
        }
    }

    @Test("Statistics are split by the source of the response")
    func statistics() {
        let loop = OutcomeHistograms()
        loop.add(.hit, nanoseconds: 60_000, bodyBytes: 10)
        loop.add(.miss, nanoseconds: 60_000_000_000, bodyBytes: 20)
        let document = StatisticsDocument(
            uptimeMilliseconds: 5,
            snapshot: MetricsSnapshot(loops: [], node: NodeCounters(), outcomes: [loop]),
            readiness: .ready, fencedMilliseconds: 7, hasDisk: true, isInCluster: false,
            receiptsPending: 0, members: []
        ).json
        #expect(ShapeCheck.faults(document, .getStatistics) == [])
        #expect(document["requests"]?["memory"] == 1 && document["bytes"]?["origin"] == 20)
        #expect(document["requests"]?["peer"] == 0)
        guard case .list(let memory) = document["latency"]?["memory"],
            case .list(let origin) = document["latency"]?["origin"],
            case .list(let bounds) = document["latency"]?["bounds_us"]
        else { return #expect(Bool(false), "\(document.compactText)") }
        #expect(memory[1] == 1 && origin.last == 1 && origin.count == bounds.count + 1)
    }

    @Test("An entry is shown with its reuse forecast")
    func entries() {
        var variant = EntryDocument.Variant(key: "http://a.example/b", name: "f00d")
        variant.isInMemory = true
        variant.fields = [("content-type", "image/png")]
        variant.decision = .refetch
        let document = EntryDocument(
            url: "http://a.example/b", key: "http://a.example/b", variants: [variant],
            owners: [Self.id], isOwner: true)
        #expect(ShapeCheck.faults(document.json, .getEntry) == [])
        let hot = HotEntriesDocument(rows: [
            .init(key: "k", url: "u", contentType: "image/png", bodyBytes: 3, accesses: 9)
        ])
        #expect(ShapeCheck.faults(hot.json, .listHotEntries) == [])
    }

    @Test("Settings are listed with their sources, the ring with its owners")
    func others() {
        let loops = Setting(
            "loops", SettingKind(noun: "a number", placeholder: "number", allowed: "0…64"),
            defaults: ["0"], meaning: "Event loops", advice: "Leave it.")
        let rows = [ConfigurationDocument.Entry(loops, loops.defaults, source: "built in")]
        let configuration = ConfigurationDocument(
            rows: rows,
            sites: [.init("a.example", origin: "http://b", options: [("tag-fields", "xkey")])],
            images: [("grace", "1d")])
        #expect(ShapeCheck.faults(configuration.json, .getConfiguration) == [])
        let ring = RingDocument(
            slots: 262_144, shares: [.init(node: Self.id, first: 1, second: 0)],
            ownershipSample: Array(repeating: 0, count: RingDocument.ownershipSampleCount))
        #expect(ShapeCheck.faults(ring.json, .getRing) == [])
        #expect(ShapeCheck.faults(LogLevelDocument("debug").json, .setLogLevel) == [])
        #expect(ShapeCheck.faults(OperationStatusDocument.json("draining"), .drain, 202) == [])
    }

    @Test("A support snapshot has all documents of one moment, and the kernel's figures")
    func support() {
        var process = SupportDocument.Process()
        process.parse(status: "Name:\tnuthatch\nVmRSS:\t   12 kB\nThreads:\t7\nVmHWM:\t-\n")
        #expect(process.residentBytes == 12 << 10 && process.threads == 7)
        let snapshot = MetricsSnapshot(loops: [], node: NodeCounters())
        let document = SupportDocument(
            takenAt: "2026-11-21T01:02:03Z", process: process,
            status: StatusDocument(
                node: Self.id, process: Self.id, version: "1.0.0", uptimeMilliseconds: 5,
                role: .admin, readiness: .ready, fencedMilliseconds: nil, snapshot: snapshot,
                hasDisk: true, isInCluster: true, unreachableSeeds: [], receiptsPending: 2,
                sites: []),
            statistics: StatisticsDocument(
                uptimeMilliseconds: 5, snapshot: snapshot, readiness: .ready,
                fencedMilliseconds: nil, hasDisk: true, isInCluster: false, receiptsPending: 0,
                members: []),
            configuration: ConfigurationDocument(rows: [], sites: [], images: []),
            logLevel: LogLevelDocument("info"), members: [],
            ring: RingDocument(
                slots: 262_144, shares: [],
                ownershipSample: Array(repeating: 0, count: RingDocument.ownershipSampleCount)),
            origins: [], purges: [], prefetches: [], metrics: "a 1\n"
        ).json
        #expect(ShapeCheck.faults(document, .getSupportSnapshot) == [])
        #expect(document["process"]?["open_descriptors"] == .null)
    }

    @Test("JSON values are written as in RFC 8259")
    func json() {
        let value: JSON = [
            "a": nil, "b": [true, 7, .decimal(0.5), .decimal(.nan)], "c": "\"\\\n\u{1F}ü",
        ]
        #expect(
            value.compactText
                == #"{"a":null,"b":[true,7,0.5,null],"c":"\"\\\u000a\u001fü"}"#)
    }
}
