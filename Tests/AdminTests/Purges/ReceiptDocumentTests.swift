import Admin
import FoundationEssentials
import Ground
import HTTPRules
import Testing

@Suite("Receipt documents")
struct ReceiptDocumentTests {
    private static func node(_ digit: Int) -> String { String(repeating: "\(digit)", count: 32) }

    private static let targets: [PurgeTarget] = [
        .url(Array("a.test/x?\"".utf8)), .prefix(host: Array("b.test".utf8), path: []),
        .prefix(host: Array("c.test:81".utf8), path: Array("/i/".utf8)), .tag([0x74, 0xFF]),
        .everything,
    ]

    /// The receipt of a purge, with the members of nodes 1, 2 and so on.
    private func receipt(_ members: ((String) -> ReceiptDocument.Member)...) -> ReceiptDocument {
        var receipt = ReceiptDocument()
        receipt.receipt = "\(ReceiptID(high: 1, low: 2, number: 3))"
        receipt.id = "a\"b\\\n"
        receipt.targets = Self.targets.map(ReceiptDocument.Target.init)
        (receipt.issuer, receipt.observer) = (Self.node(1), Self.node(2))
        receipt.ageMilliseconds = 1_500
        (receipt.majorityMilliseconds, receipt.millisecondsUntilBounded) = (12, 8_512)
        receipt.members = members.enumerated().map { $1(Self.node($0 + 1)) }
        return receipt
    }

    private func confirmed(
        _ elapsedMilliseconds: Int64
    ) -> (String) -> ReceiptDocument.Member {
        { .init(confirmed: $0, elapsedMilliseconds: elapsedMilliseconds) }
    }

    private func unreachable(
        _ sinceMillisecondsAgo: Int64
    ) -> (String) -> ReceiptDocument.Member {
        { .init(unreachable: $0, sinceMillisecondsAgo: sinceMillisecondsAgo) }
    }

    private let pending = ReceiptDocument.Member.init(pending:)

    /// What a client reads.
    private struct Read: Decodable, Equatable {
        struct Member: Decodable, Equatable {
            var node: String
            var standing: String
            var elapsedMs: Int?
            var unreachableSinceMsAgo: Int?
        }
        struct Target: Decodable, Equatable {
            var url: String?
            var prefix: String?
            var tag: String?
            var everything: Bool?
        }

        var receipt: String
        var id: String
        var mode: String
        var issuedBy: String?
        var heldMs: Int
        var allConfirmed: Bool
        var confirmed: Int
        var pending: Int
        var unreachable: Int
        var majorityMs: Int?
        var boundedInMs: Int?
        var members: [Member]
        var targets: [Target]
    }

    private func read(_ receipt: ReceiptDocument) throws -> Read {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return try decoder.decode(Read.self, from: Data(receipt.json.formattedBytes))
    }

    @Test("The document has the confirmations and what was purged")
    func whole() throws {
        let receipt = receipt(confirmed(0), pending, unreachable(90))
        let read = try read(receipt)
        #expect(read.receipt == "00000000000000010000000000000002-3" && read.id == "a\"b\\\n")
        #expect(read.mode == "hard" && read.issuedBy == Self.node(1) && read.heldMs == 1_500)
        #expect(!read.allConfirmed)
        #expect((read.confirmed, read.pending, read.unreachable) == (1, 1, 1))
        #expect(read.majorityMs == 12 && read.boundedInMs == 8_512)
        #expect(
            read.members == [
                .init(node: Self.node(1), standing: "confirmed", elapsedMs: 0),
                .init(node: Self.node(2), standing: "pending"),
                .init(
                    node: Self.node(3), standing: "unreachable", unreachableSinceMsAgo: 90),
            ])
        #expect(
            read.targets == [
                .init(url: "//a.test/x?\""), .init(prefix: "//b.test"),
                .init(prefix: "//c.test:81/i/"), .init(tag: "t\u{FFFD}"),
                .init(everything: true),
            ])
    }

    @Test("Fields and units have their documented names")
    func fieldNames() {
        let receipt = receipt(confirmed(5), unreachable(6))
        for part in [
            "{\"receipt\":\"", ",\"id\":\"", ",\"mode\":\"hard\"", ",\"issued_by\":\"",
            ",\"seen_by\":\"", ",\"members_known\":true,",
            ",\"held_ms\":1500,", ",\"all_confirmed\":false,", ",\"confirmed\":1,",
            ",\"pending\":0,", ",\"unreachable\":1,", ",\"majority_ms\":12,",
            ",\"bounded_in_ms\":8512,", ",\"members\":[\n{\"node\":\"", ",\"elapsed_ms\":5},\n",
            ",\"unreachable_since_ms_ago\":6}\n]", ",\"targets\":[\n{\"url\":\"", "]}\n",
        ] {
            let page = String(decoding: receipt.json.formattedBytes, as: UTF8.self)
            #expect(page.contains(part), "\(part) in \(page)")
        }
    }

    @Test("Unknown values are null and not omitted")
    func unknown() throws {
        var receipt = receipt(pending)
        receipt.issuer = nil
        receipt.majorityMilliseconds = nil
        receipt.millisecondsUntilBounded = nil
        receipt.mode = "soft"
        let read = try read(receipt)
        #expect(read.issuedBy == nil && read.majorityMs == nil && read.boundedInMs == nil)
        #expect(read.mode == "soft")
        for name in ["issued_by", "majority_ms", "bounded_in_ms"] {
            #expect(receipt.json.compactText.contains("\"\(name)\":null"))
        }
    }

    @Test("The issuer's status is 200 only if all members have confirmed")
    func status() {
        let confirmed = confirmed(4)
        #expect(receipt(confirmed, confirmed).issueStatusCode == 200)
        #expect(receipt(confirmed, pending).issueStatusCode == 202)
        #expect(receipt(confirmed, unreachable(1)).issueStatusCode == 202)
        var alone = receipt(confirmed)
        alone.majorityMilliseconds = nil
        #expect(alone.issueStatusCode == 202, "without a majority there may be other members")
        var young = receipt(confirmed, confirmed)
        young.areMembersKnown = false
        #expect(young.issueStatusCode == 202, "there may be unknown members")
        #expect(receipt().issueStatusCode == 202, "no member has confirmed")
    }

    @Test("The targets in a receipt can be purged again")
    func again() throws {
        for target in try read(receipt(pending)).targets {
            if let url = target.url { _ = try PurgeTarget.url(parsing: Array(url.utf8)) }
            guard let prefix = target.prefix else { continue }
            let again = try PurgeTarget.prefix(parsing: Array(prefix.utf8))
            #expect(Self.targets.contains(again), "\(prefix)")
        }
    }
}
