import Ground
import Testing
import Tiers

@Suite("Whose part of the disk a record counts to")
struct DiskShareLimitsTests {
    private func number(_ key: String) -> UInt16 {
        let bytes = Array(key.utf8)
        return DiskShareID.number(ofKey: bytes.span)
    }

    private func host(_ host: String) -> UInt16 {
        let bytes = Array(host.utf8)
        return DiskShareID.number(ofHost: bytes.span)
    }

    @Test("an image counts to nobody's, whatever its URL")
    func images() {
        for key in ["http://a.example/", "https://a.example//b/", "", "/", "x//a/"] {
            #expect(number(key) == DiskShareID.images)
        }
    }

    @Test("a site's answers count to its host, whatever their path and variant")
    func sites() {
        for key in ["//a.example/", "//a.example/b//c?d", "//a.example/\n0123\naccept:*\n"] {
            #expect(number(key) == host("a.example"))
        }
        #expect(number("//a.example:81/") == host("a.example:81"))
        #expect(number("///") == host(""))
    }

    @Test("the number of a host is the one that stands on disks")
    func stability() {
        #expect(host("www.example.com") == 6431)
    }

    @Test("without limits nothing is limited")
    func none() {
        #expect(DiskShareLimits().isEmpty)
        #expect(DiskShareLimits().limit(of: host("a")) == nil)
    }

    @Test("a site has its own limit or none, all other hosts have that of the rest")
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

    @Test("an entry of the index keeps its share through all that changes")
    func entries() {
        var entry = DiskEntry(
            location: DiskLocation(segment: 65_535, offsetUnits: 7), lengthUnits: 9, lastAccess: 3,
            accessCount: 255, flags: .inMain, share: 65_535)
        entry.lastAccess = .max
        entry.accessCount = 0
        #expect(entry.share == 65_535)
        #expect(entry.lastAccess == .max && entry.accessCount == 0 && entry.flags == .inMain)
    }

    @Test("a footer says it again")
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
