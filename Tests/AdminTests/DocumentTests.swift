import Admin
import Telemetry
import Testing

@Suite("Documents of the admin port")
struct DocumentTests {
    private static let id = String(repeating: "0a", count: 16)

    private static func status(_ snapshot: MetricsSnapshot, isWhole: Bool) -> StatusDocument {
        var document = StatusDocument()
        (document.node, document.process, document.role) = (id, id, "purge")
        (document.readiness, document.fencedMilliseconds) = ("ready", isWhole ? nil : 7)
        document.disk = isWhole ? .init(snapshot) : nil
        document.cluster = isWhole ? .init(snapshot) : nil
        return document
    }

    @Test("Health is ok, and only a ready node accepts requests")
    func health() {
        #expect(HealthDocument().json.text == "{\"status\":\"ok\"}\n")
        #expect(ShapeCheck.faults(HealthDocument().json, .getHealth) == [])
        for (readiness, status) in zip(
            Readiness.allCases, [503, 503, 200, 503] as [UInt16])
        {
            let document = HealthDocument(readiness, isFenced: false).json
            #expect(HealthDocument.status(readiness) == status)
            #expect(document.text == "{\"status\":\"\(readiness)\"}\n")
            #expect(ShapeCheck.faults(document, .getReadiness, status) == [])
        }
        let fenced = HealthDocument(.ready, isFenced: true).json
        #expect(fenced.text == "{\"status\":\"ready\",\"fenced\":true}\n")
        #expect(ShapeCheck.faults(fenced, .getReadiness) == [])
    }

    @Test("Origins are listed with their circuits")
    func origins() {
        var row = OriginDocument()
        (row.origin, row.connections, row.idle, row.waiting) = ("a.example:80", 3, 1, 2)
        (row.circuit, row.failures, row.retryAfterMilliseconds) = ("open", 20, 4000)
        (row.fetches, row.failed, row.receivedBytes) = (30, 20, 7)
        row.failuresByReason = NamedCounts([("connect", 20)])
        row.lastError = LastErrorDocument(
            reason: "connect", detail: "Connection refused", millisecondsAgo: 5)
        (row.health, row.url) = ("down", "http://a.example:80")
        let document = DocumentList([row]).json
        #expect(
            document.text == """
                {"origins":[
                {"origin":"a.example:80","connections":3,"idle":1,"waiting":2,"circuit":"open",\
                "failures":20,"retry_after_ms":4000,"fetches":30,"failed":20,"received_bytes":7,\
                "failures_by_reason":{"connect":20},\
                "last_error":{"reason":"connect","detail":"Connection refused","ago_ms":5},\
                "health":"down","url":"http://a.example:80"}
                ]}

                """)
        #expect(ShapeCheck.faults(document, .listOrigins) == [])
        #expect(ShapeCheck.faults(DocumentList<OriginDocument>().json, .listOrigins) == [])
    }

    @Test("Members are listed with their ownership and unconfirmed purges")
    func members() {
        var row = MemberDocument()
        (row.node, row.process, row.address) = (Self.id, Self.id, "10.0.0.1:8082")
        (row.state, row.isVoter, row.millisecondsSinceContact) = ("alive", true, 0)
        (row.isSelf, row.isConnected, row.isCaughtUp) = (true, true, true)
        (row.weight, row.effectiveWeight, row.primaryShare) = (1000, 400, 0.05)
        row.lagRecords = 7
        let document = DocumentList([row]).json
        #expect(
            document.text == """
                {"members":[
                {"node":"\(Self.id)","process":"\(Self.id)","address":"10.0.0.1:8082",\
                "state":"alive","counted":true,"contact_ms_ago":0,\
                "self":true,"connected":true,"caught_up":true,"draining":false,"weight":1000,\
                "weight_counted":400,"ring_share":0.05,"lag_records":7,"name":"",\
                "admin_url":null,"version":"","summary":null,"settings_differ":[]}
                ]}

                """)
        #expect(ShapeCheck.faults(document, .listMembers) == [])
        #expect(DocumentList<MemberDocument>().json.text == "{\"members\":[]}\n")
    }

    @Test("A node's status has null for absent values")
    func status() {
        let snapshot = MetricsSnapshot(loops: [], node: NodeCounters())
        for isWhole in [true, false] {
            let document = Self.status(snapshot, isWhole: isWhole)
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
        var statistics = StatisticsDocument(
            MetricsSnapshot(loops: [], node: NodeCounters(), outcomes: [loop]))
        (statistics.readiness, statistics.fencedMilliseconds) = ("ready", 7)
        let document = statistics.json
        #expect(ShapeCheck.faults(document, .getStatistics) == [])
        #expect(document["requests"]?["memory"] == 1 && document["bytes"]?["origin"] == 20)
        #expect(document["requests"]?["peer"] == 0)
        guard case .list(let memory) = document["latency"]?["memory"],
            case .list(let origin) = document["latency"]?["origin"],
            case .list(let bounds) = document["latency"]?["bounds_us"]
        else { return #expect(Bool(false), "\(document.compactText)") }
        #expect(memory[1] == 1 && origin.last == 1 && origin.count == bounds.count + 1)
    }

    @Test("Responses are counted by status class, and errors by the reasons of the metrics")
    func classes() {
        let loop = EventLoopCounters()
        // The metric counts 101 among 2xx.
        for (metric, count) in [
            (.responsesSuccess, 5), (.upgrades, 1), (.responsesPartial, 2),
            (.responsesRedirected, 1), (.responsesNotModified, 3), (.responsesClientError, 4),
            (.responsesServerError, 6), (.refusedWaitTime, 7), (.originFailuresTLS, 8),
        ] as [(Metric, Int)] {
            loop.add(metric, count)
        }
        let statistics = StatisticsDocument(MetricsSnapshot(loops: [loop], node: NodeCounters()))
        #expect(
            statistics.responses.json.compactText
                == #"{"1xx":1,"2xx":6,"3xx":4,"4xx":4,"5xx":6}"#)
        #expect(statistics.responses.all == 21)
        #expect(statistics.errors.refused["wait_time"] == 7)
        #expect(statistics.errors.origin["tls"] == 8 && statistics.errors.origin["name"] == 0)
    }

    @Test("Sites, certificates and conditions have the shape of their operations")
    func shapes() {
        var site = SiteDocument()
        (site.site, site.origins, site.health) = ("a.example", ["http://b:80"], "failing")
        site.lastError = LastErrorDocument(reason: "tls", detail: "it", millisecondsAgo: 1)
        #expect(ShapeCheck.faults(DocumentList([site]).json, .listSites) == [])
        var certificate = CertificateDocument()
        (certificate.names, certificate.daysLeft) = (["a.example"], -3)
        #expect(ShapeCheck.faults(DocumentList([certificate]).json, .listCertificates) == [])
        let conditions = ConditionsDocument([
            Condition(.draining, .warning, "It drains.", advice: ""),
            Condition(.fenced, .critical, "It is.", advice: "Wait.", alert: "NuthatchFenced"),
        ])
        #expect(conditions.state == "critical")
        #expect(ShapeCheck.faults(conditions.json, .getConditions) == [])
        #expect(ShapeCheck.faults(HistoryDocument().json, .getHistory) == [])
        var member = MemberDocument()
        (member.node, member.process, member.address) = (Self.id, Self.id, "10.0.0.1:8082")
        member.summary = MemberDocument.Summary()
        #expect(ShapeCheck.faults(DocumentList([member]).json, .listMembers) == [])
    }

    @Test("An entry is shown with its reuse forecast")
    func entries() {
        var variant = EntryDocument.Variant()
        variant.headerFields = [["content-type", "image/png"]]
        variant.decision = EntryDocument.ServeDecision.refetch.rawValue
        var document = EntryDocument()
        (document.variants, document.owners, document.isOwner) = ([variant], [Self.id], true)
        #expect(ShapeCheck.faults(document.json, .getEntry) == [])
        let hot = DocumentList([HotEntryDocument()])
        #expect(ShapeCheck.faults(hot.json, .listHotEntries) == [])
    }

    @Test("Settings are listed with their sources, the ring with its owners")
    func others() {
        var configuration = ConfigurationDocument()
        let loops = Setting(
            "loops", SettingKind(noun: "a number", placeholder: "number", allowed: "0…64"),
            defaults: ["0"], meaning: "Event loops", advice: "Leave it.")
        configuration.entries = [.init(loops, loops.defaults, source: "built in")]
        configuration.images = NamedTexts([("grace", "1d")])
        configuration.sites = [
            .init("a.example", origin: "http://b", options: NamedTexts([("tag-fields", "xkey")]))
        ]
        #expect(ShapeCheck.faults(configuration.json, .getConfiguration) == [])
        let ring = RingDocument(
            slots: 262_144, shares: [.init(node: Self.id, primary: 1, secondary: 0)])
        #expect(ShapeCheck.faults(ring.json, .getRing) == [])
        #expect(ShapeCheck.faults(LogLevelDocument("debug").json, .setLogLevel) == [])
        #expect(ShapeCheck.faults(OperationStatusDocument("draining").json, .drain, 202) == [])
    }

    @Test("A support snapshot has all documents of one moment, and the kernel's figures")
    func support() {
        var process = SupportDocument.Process()
        process.parse(status: "Name:\tnuthatch\nVmRSS:\t   12 kB\nThreads:\t7\nVmHWM:\t-\n")
        #expect(process.residentBytes == 12 << 10 && process.threads == 7)
        let snapshot = MetricsSnapshot(loops: [], node: NodeCounters())
        var support = SupportDocument()
        support.process = process
        support.status = Self.status(snapshot, isWhole: true)
        support.statistics = StatisticsDocument(snapshot)
        support.statistics.readiness = "ready"
        support.logLevel = LogLevelDocument("info")
        let document = support.json
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
