import Admin
import FoundationEssentials
import Ground
import Testing

@Suite("Documents as a client reads them")
struct DocumentDecodingTests {
    private func decode<Document: Decodable>(
        _ type: Document.Type, _ text: [UInt8]
    ) throws -> Document {
        try JSONDecoder().decode(type, from: Data(text))
    }

    /// Holds that a client reads what a node means, and ignores what it does not know.
    private func check<Document: AdminDocument>(
        _ change: (inout Document) -> Void = { _ in }
    ) throws {
        var document = Document()
        change(&document)
        #expect(try decode(Document.self, document.json.formattedBytes) == document)
        guard case .object(let members) = document.json else { return }
        let newer = JSON.object(members + [JSON.Member("unheard_of", ["a": [nil, 1, "b"]])])
        #expect(try decode(Document.self, newer.formattedBytes) == document)
    }

    @Test("what a node sends is read as it was meant")
    func roundTrips() throws {
        try check { (document: inout StatusDocument) in
            (document.role, document.readiness) = ("a role of later", "draining")
            (document.fencedMilliseconds, document.disk, document.cluster) = (7, .init(), .init())
            document.unreachableSeeds = ["a:1: no route"]
        }
        try check { (document: inout StatisticsDocument) in
            (document.requests.memory, document.bytes.none) = (1 << 62, 1)
            document.latency.bounds = [1, 2]
            document.members = [MemberDocument()]
            document.responses.serverErrors = 3
            document.errors.refused = NamedCounts([("fills", 1), ("waiters", 2)])
        }
        try check { (document: inout DocumentList<OriginDocument>) in
            var origin = OriginDocument()
            origin.lastError = LastErrorDocument(reason: "tls", detail: "d", millisecondsAgo: 1)
            origin.failuresByReason = NamedCounts([("tls", 1)])
            document.items = [origin]
        }
        try check { (document: inout DocumentList<SiteDocument>) in
            document.items = [SiteDocument()]
        }
        try check { (document: inout DocumentList<CertificateDocument>) in
            document.items = [CertificateDocument()]
        }
        try check { (document: inout ConditionsDocument) in
            let fault = Condition(.diskFull, .critical, "It is.", advice: "Free space.", alert: "N")
            document = ConditionsDocument([fault])
        }
        try check { (document: inout HistoryDocument) in
            (document.newestMilliseconds, document.requests) = (20_000, [1, 2])
        }
        try check { (document: inout MemberDocument) in
            (document.primaryShare, document.lagRecords, document.state) = (0.25, 3, "left")
            (document.name, document.adminURL) = ("n1", "http://a:1")
            document.summary = MemberDocument.Summary()
        }
        try check { (document: inout EntryDocument) in
            var variant = EntryDocument.Variant()
            (variant.entityTag, variant.accesses) = ("\"e\"", 3)
            (variant.remainingFreshnessMilliseconds, variant.decision) = (-5, "refetch")
            variant.headerFields = [["content-type", "image/png"]]
            document.variants = [variant]
        }
        try check { (document: inout DocumentList<HotEntryDocument>) in
            document.items = [HotEntryDocument()]
        }
        try check { (document: inout DocumentList<ReceiptDocument>) in
            var receipt = ReceiptDocument()
            (receipt.mode, receipt.majorityMilliseconds) = ("soft", 4)
            receipt.members = [
                .init(pending: "a"), .init(confirmed: "b", elapsedMilliseconds: 4),
                .init(unreachable: "c", sinceMillisecondsAgo: 70),
            ]
            receipt.targets = [.init(.tag(Array("t".utf8))), .init(.everything)]
            document.items = [receipt]
        }
        try check { (document: inout PrefetchDocument) in
            (document.sitemap, document.state) = ("http://a.example/s.xml", .done)
            document.failures = [.init(url: "u", reason: "it responded with 404")]
        }
        try check { (document: inout SupportDocument) in
            document.process.residentBytes = 1
            document.logLevel = LogLevelDocument("info")
            document.configuration.images = NamedTexts([("grace", "1d")])
        }
    }

    @Test("what older nodes do not send has its default, and what all send is needed")
    func older() throws {
        func without(_ names: String..., in document: JSON) -> [UInt8] {
            guard case .object(let members) = document else { return [] }
            return JSON.object(members.filter { !names.contains($0.name) }).formattedBytes
        }
        let receipt = ReceiptDocument()
        #expect(
            try decode(
                ReceiptDocument.self, without("seen_by", "members_known", in: receipt.json))
                == receipt)
        let origin = OriginDocument()
        let added = ["fetches", "failed", "received_bytes", "failures_by_reason", "last_error"]
        guard case .object(let members) = origin.json else { return }
        let older = JSON.object(members.filter { !(added + ["health", "url"]).contains($0.name) })
        #expect(try decode(OriginDocument.self, older.formattedBytes) == origin)
        let statistics = StatisticsDocument()
        #expect(
            try decode(
                StatisticsDocument.self, without("responses", "errors", in: statistics.json))
                == statistics)
        let member = MemberDocument()
        #expect(
            try decode(
                MemberDocument.self,
                without(
                    "name", "admin_url", "version", "summary", "settings_differ", in: member.json))
                == member)
        let status = StatusDocument()
        #expect(try decode(StatusDocument.self, without("missing", in: status.json)) == status)
        #expect(throws: DecodingError.self) {
            try decode(StatusDocument.self, without("node", in: status.json))
        }
        #expect(throws: DecodingError.self) { try decode(StatusDocument.self, Array("{}".utf8)) }
        #expect(throws: DecodingError.self) {
            try decode(StatusDocument.self, Array(#"{"node": 7}"#.utf8))
        }
    }
}
