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

    // MARK: What is wrong

    /// An origin that is down, and a certificate that expires soon.
    static let conditions: [Condition] = {
        var origin = Condition(
            .originDown, .critical, subject: "http://a.example:80",
            "http://a.example:80 is down: 12 of 13 fetches failed, and its circuit is open.",
            advice: "Check that it runs, and that this node reaches it.",
            alert: "NuthatchOriginLeftAlone")
        origin.sinceMilliseconds = 125_000
        var certificate = Condition(
            .certificateExpiring, .warning, subject: "a.pem", "a.pem expires in 12 days.",
            advice: "Renew it, and send the node SIGHUP.")
        certificate.sinceMilliseconds = 18 * 86_400_000
        return [origin, certificate]
    }()

    private static let refused = LastErrorDocument(
        reason: "connect", detail: "Connection refused", millisecondsAgo: 3_000)

    /// An origin that is down, after one that is not.
    static let origins: [OriginDocument] = {
        var good = OriginDocument()
        (good.url, good.connections, good.fetches) = ("http://b.example:80", 2, 40)
        good.receivedBytes = 400_000
        var bad = OriginDocument()
        (bad.url, bad.health, bad.circuit) = ("http://a.example:80", "down", "open")
        (bad.retryAfterMilliseconds, bad.waiting) = (8_000, 4)
        (bad.fetches, bad.failed, bad.lastError) = (13, 12, refused)
        bad.failuresByReason = NamedCounts([("connect", 11), ("timeout", 1)])
        return [good, bad]
    }()

    /// A site whose origin is down.
    static let sites: [SiteDocument] = {
        var site = SiteDocument()
        (site.site, site.health, site.lastError) = ("www.example.com", "down", refused)
        (site.requests.memory, site.requests.origin) = (987, 13)
        site.bytes.memory = 100 << 20
        site.bytes.memory -= 2_500_000
        (site.responses.successful, site.responses.clientErrors) = (950, 10)
        (site.responses.serverErrors, site.originReceivedBytes) = (40, 1 << 20)
        return [site]
    }()

    /// A certificate that expires soon, after one that does not.
    static let certificates: [CertificateDocument] = [("b.example", 80), ("a.example", 12)].map {
        name, days in
        var certificate = CertificateDocument()
        (certificate.file, certificate.names) = ("\(name.prefix(1)).pem", [name])
        (certificate.notAfter, certificate.daysLeft) = ("2027-01-02T03:04:05Z", days)
        return certificate
    }
}
