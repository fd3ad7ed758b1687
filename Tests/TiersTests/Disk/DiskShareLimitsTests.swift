import Ground
import Testing
import Tiers

@Suite("The disk share that a record counts towards")
struct DiskShareLimitsTests {
    private func number(_ key: String) -> UInt16 {
        let bytes = Array(key.utf8)
        return DiskShareID.number(ofKey: bytes.span)
    }

    private func host(_ host: String) -> UInt16 {
        let bytes = Array(host.utf8)
        return DiskShareID.number(ofHost: bytes.span)
    }

    @Test("Images count towards no site's share, whatever their URL")
    func images() {
        for key in ["http://a.example/", "https://a.example//b/", "", "/", "x//a/"] {
            #expect(number(key) == DiskShareID.images)
        }
    }

    @Test("A site's responses count towards its host, whatever their path and variant")
    func sites() {
        for key in ["//a.example/", "//a.example/b//c?d", "//a.example/\n0123\naccept:*\n"] {
            #expect(number(key) == host("a.example"))
        }
        #expect(number("//a.example:81/") == host("a.example:81"))
        #expect(number("///") == host(""))
    }

    @Test("The share number of a host is stable, because it is stored on disk")
    func stability() {
        #expect(host("www.example.com") == 6431)
    }

    @Test("Without limits no share is limited")
    func none() {
        #expect(DiskShareLimits().isEmpty)
        #expect(DiskShareLimits().limit(of: host("a")) == nil)
    }

    @Test("A site has its own limit or none; other hosts share the default limit")
    func groups() throws {
        var shares = DiskShareLimits()
        shares.setHostLimit(Array("a".utf8), percent: 20)
        shares.setHostLimit(Array("b".utf8), percent: nil)
        #expect(!shares.isEmpty)
        let own = try #require(shares.limit(of: host("a")))
        #expect(own.group == .host(host("a")) && own.percent == 20)
        #expect(shares.limit(of: host("b")) == nil)
        #expect(shares.limit(of: host("c")) == nil)
        shares.setDefaultLimit(percent: 5)
        let rest = try #require(shares.limit(of: host("c")))
        #expect(rest.group == .others && rest.percent == 5)
        #expect(shares.limit(of: host("b")) == nil)
        #expect(shares.limit(of: DiskShareID.images) == nil)
        #expect(
            shares.contains(host("c"), in: .others) && shares.contains(host("a"), in: own.group))
        #expect(
            !shares.contains(host("a"), in: .others) && !shares.contains(host("b"), in: .others))
        #expect(!shares.contains(DiskShareID.images, in: .others))
    }

    @Test("An index entry keeps its share when its other fields change")
    func entries() {
        var entry = DiskEntry(
            location: DiskLocation(segment: 65_535, offsetUnits: 7), lengthUnits: 9, lastAccess: 3,
            accessCount: 255, flags: .inMain, share: 65_535)
        entry.lastAccess = .max
        entry.accessCount = 0
        #expect(entry.share == 65_535)
        #expect(entry.lastAccess == .max && entry.accessCount == 0 && entry.flags == .inMain)
    }

    @Test("A footer keeps the share of each entry")
    func footer() throws {
        let header = SegmentHeader(
            nodeID: NodeID(low: 1, high: 2), segmentBytes: 1 << 20, sequence: 3, salt: 4,
            openedAtVersion: .zero, openedWall: 0, queue: 0)
        let entry = SegmentFooter.Entry(
            digest: EntryDigest(first: 5, second: 6), offsetUnits: 64, units: 4,
            invalidationVersion: .zero,
            lastAccess: 7, accessCount: 8, share: 999)
        let footer = SegmentFooter(entries: [entry], recordsEnd: 8192, sequence: 3)
        let bytes = footer.bytes(salt: 4, segmentBytes: 1 << 20)
        #expect(try SegmentFooter(bytes.span, header: header).entries == [entry])
    }
}
