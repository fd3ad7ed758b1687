import Admin
import Client

/// Documents as a node would give them, with what a test is about.
enum Reports {
    static func id(_ digit: Int) -> String { String(repeating: "\(digit)", count: 32) }

    static func member(
        _ digit: Int, _ state: String = "alive", isSelf: Bool = false, lag: UInt64? = 0
    ) -> MemberDocument {
        var member = MemberDocument()
        (member.node, member.process) = (id(digit), id(digit))
        (member.address, member.state) = ("10.0.0.\(digit):8082", state)
        (member.isVoter, member.isCaughtUp, member.isSelf) = (true, true, isSelf)
        (member.millisecondsSinceContact, member.isConnected) = (100, state == "alive")
        member.primaryShare = state == "alive" ? 0.2 : 0
        member.lagRecords = isSelf ? nil : lag
        return member
    }

    /// Statistics `at` milliseconds after the start, with `hits` from memory and `misses` from the
    /// origin, of 10 KiB each.
    static func statistics(
        at milliseconds: Int64, hits: UInt64 = 0, misses: UInt64 = 0,
        members: [MemberDocument] = [], fenced: Int64? = nil, pending: UInt64 = 0
    ) -> StatisticsDocument {
        var document = StatisticsDocument()
        document.uptimeMilliseconds = milliseconds
        (document.requests.memory, document.requests.origin) = (hits, misses)
        (document.bytes.memory, document.bytes.origin) = (hits * 10_240, misses * 10_240)
        (document.origin.fetchesOK, document.origin.receivedBytes) = (misses, misses * 10_240)
        document.latency.bounds = [50, 100, 1_000]
        document.latency.memory = [hits, 0, 0, 0]
        document.latency.disk = [0, 0, 0, 0]
        document.latency.peer = [0, 0, 0, 0]
        document.latency.origin = [0, 0, misses, 0]
        (document.readiness, document.fencedMilliseconds) = ("ready", fenced)
        (document.memory.usedBytes, document.memory.limitBytes) = (220 << 20, 512 << 20)
        document.memory.entries = 22_000
        var disk = StatusDocument.Disk()
        (disk.isUp, disk.usedBytes, disk.limitBytes) = (true, 3 << 30, 10 << 30)
        disk.entries = 300_000
        document.disk = disk
        document.invalidations.receiptsPending = pending
        var cluster = StatusDocument.Cluster()
        cluster.aliveCount = UInt64(members.count { $0.state == "alive" })
        cluster.voterCount = UInt64(members.count)
        document.cluster = cluster
        document.members = members
        return document
    }

    static func receipt(
        _ number: Int, held: Int64, confirmed: Int, of all: Int, tag: String? = nil,
        url: String? = nil
    ) -> ReceiptDocument {
        var receipt = ReceiptDocument()
        (receipt.receipt, receipt.id) = ("\(id(1))-\(number)", "deploy-\(number)")
        (receipt.issuer, receipt.ageMilliseconds) = (id(1), held)
        (receipt.majorityMilliseconds, receipt.millisecondsUntilBounded) = (2, 4_000)
        receipt.members = (1...all).map { index in
            index <= confirmed
                ? .init(confirmed: id(index), elapsedMilliseconds: 3)
                : .init(unreachable: id(index), sinceMillisecondsAgo: 8_000)
        }
        var target = ReceiptDocument.Target()
        (target.tag, target.url) = (tag, url)
        receipt.targets = [target]
        return receipt
    }

    static func hot(
        _ rows: [(url: String, accesses: UInt64)]
    ) -> DocumentList<HotEntryDocument> {
        DocumentList(
            rows.map { row in
                var entry = HotEntryDocument()
                (entry.url, entry.accesses) = (row.url, row.accesses)
                (entry.contentType, entry.bodyBytes) = ("image/jpeg", 10_240)
                return entry
            })
    }
}
