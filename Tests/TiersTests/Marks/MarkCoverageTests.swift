import Ground
import Testing
import Tiers

@Suite("What a mark covers")
struct MarkCoverageTests {
    private static let markVersion = InvalidationVersion(epoch: 3, count: 5)

    private func covers(
        _ target: PurgeTarget, _ key: String, tags: [String] = [],
        version: InvalidationVersion = .zero
    ) -> Bool {
        effect(target, key, tags: tags, version: version) != nil
    }

    private func effect(
        _ target: PurgeTarget, _ key: String, tags: [String] = [],
        version: InvalidationVersion = .zero,
        isSoft: Bool = false
    ) -> InvalidationMark.Effect? {
        InvalidationMark(target, isSoft: isSoft, version: Self.markVersion).effect(
            on: Array(key.utf8), tags: tags.map { Array($0.utf8) }, version: version)
    }

    private func host(_ text: String) -> PurgeTarget {
        .prefix(host: Array(text.utf8), path: [])
    }

    private func prefix(_ text: String) -> PurgeTarget {
        let path = text.drop { $0 != "/" }
        return .prefix(host: Array(text.dropLast(path.count).utf8), path: Array(path.utf8))
    }

    @Test("A mark affects entries that were requested before it, and no later ones")
    func versions() {
        let before = InvalidationVersion(epoch: 3, count: 4)
        #expect(effect(.everything, "http://a/b", version: before) == .purged)
        #expect(effect(.everything, "http://a/b", version: before, isSoft: true) == .stale)
        #expect(effect(.everything, "http://a/b", version: Self.markVersion) == nil)
        #expect(
            effect(.everything, "http://a/b", version: InvalidationVersion(epoch: 4, count: 0))
                == nil)
        #expect(
            effect(.everything, "http://a/b", version: InvalidationVersion(epoch: 2, count: 99))
                == .purged)
    }

    @Test("A URL or a tag covers exact matches")
    func exact() {
        #expect(covers(.url(Array("a/b".utf8)), "http://a/b"))
        #expect(!covers(.url(Array("a/b".utf8)), "http://a/bc"))
        #expect(covers(.tag(Array("news".utf8)), "http://a/b", tags: ["front", "news"]))
        #expect(!covers(.tag(Array("news".utf8)), "http://a/b", tags: ["newspaper"]))
    }

    @Test("A host covers its URLs on every port and scheme, and no other host's")
    func hosts() {
        for key in [
            "http://a.test/b", "https://a.test/", "https://a.test", "http://a.test:8080/b",
            "http://a.test?x",
        ] {
            #expect(covers(host("a.test"), key), "\(key)")
        }
        for key in [
            "http://a.tester/b", "http://a.test.evil/", "http://b/a.test", "http://b.a.test/",
            "http://a.tes/",
        ] {
            #expect(!covers(host("a.test"), key), "\(key)")
        }
    }

    @Test("A prefix covers what is below it and ends at a segment's boundary")
    func prefixes() {
        for key in [
            "http://a/img", "https://a/img/1", "http://a/img?x=1", "http://a/img/",
        ] {
            #expect(covers(prefix("a/img"), key), "\(key)")
        }
        for key in ["http://a/imgs", "http://a/im", "http://b/a/img", "http://a:1/img"] {
            #expect(!covers(prefix("a/img"), key), "\(key)")
        }
        #expect(covers(prefix("a/img/"), "http://a/img/1"))
        #expect(!covers(prefix("a/img/"), "http://a/img"))
        #expect(covers(prefix("a/"), "http://a/anything"))
    }

    @Test("A URL covers all schemes and all variants")
    func urls() {
        let url = PurgeTarget.url(Array("a.test/b?c".utf8))
        for key in [
            "http://a.test/b?c", "https://a.test/b?c", "//a.test/b?c", "//a.test/b?c#https",
            "//a.test/b?c\nwebp", "//a.test/b?c#https\nwebp#/",
        ] {
            #expect(covers(url, key), "\(key)")
        }
        for key in ["http://a.test/b", "//a.test/b?cd", "//a.test:81/b?c", "//b.test/b?c"] {
            #expect(!covers(url, key), "\(key)")
        }
    }

    @Test("A prefix covers the URL that equals it, with any scheme and in all variants")
    func endOfPrefix() {
        for key in ["//a/img#https", "//a/img\nwebp", "//a/img#https\nwebp"] {
            #expect(covers(prefix("a/img"), key), "\(key)")
        }
        #expect(!covers(prefix("a/img"), "//a/imgs#https"))
        #expect(covers(host("a"), "//a:81/img#https"))
    }

    @Test("An entry is covered by the URLs of its originals as by its own")
    func implicitURLs() {
        let tags = ["news"] + ["o.test/photo.jpg?v", "cdn.test:81/p/1"].map(implicit)
        let key = "//w.test/thumb/7"
        func isCovered(_ target: PurgeTarget) -> Bool { covers(target, key, tags: tags) }
        #expect(isCovered(.url(Array("o.test/photo.jpg?v".utf8))))
        #expect(isCovered(.url(Array("cdn.test:81/p/1".utf8))))
        #expect(isCovered(.url(Array("w.test/thumb/7".utf8))))
        #expect(isCovered(prefix("o.test/photo.jpg")) && isCovered(prefix("cdn.test:81/p")))
        #expect(isCovered(host("o.test")) && isCovered(host("cdn.test")))
        #expect(isCovered(.tag(Array("news".utf8))))
        #expect(!isCovered(.url(Array("o.test/photo.jpg".utf8))))
        #expect(!isCovered(.url(Array("news".utf8))) && !isCovered(host("news")))
        #expect(!isCovered(.tag(Array("o.test/photo.jpg?v".utf8))))
        #expect(!isCovered(prefix("o.test/photo")) && !isCovered(host("cdn.tes")))
    }

    private func implicit(_ name: String) -> String {
        String(decoding: URLName.tag(Array(name.utf8)[...]), as: UTF8.self)
    }
}

@Suite("Recovering index entries at start")
struct LogRecoveryTests {
    private let header = SegmentHeader(
        nodeID: .sample, segmentBytes: 1 << 20, sequence: 1, salt: 2, openedAtVersion: .zero,
        openedWall: 0, queue: SegmentQueue.main.rawValue)

    /// A segment of `entries`, closed or not.
    private func segment(
        _ entries: [SegmentFooter.Entry], isClosed: Bool = true
    ) throws -> SegmentRecovery.RecoveredSegment {
        var recovery = SegmentRecovery(nodeID: .sample, segmentBytes: 1 << 20)
        recovery.bytesRead(header.bytes.span)
        let footer = SegmentFooter(entries: entries, recordsEnd: 1 << 16, sequence: 1)
        let bytes = footer.bytes(salt: 2, segmentBytes: 1 << 20)
        let trailer = Array(bytes.suffix(SegmentFooter.trailerBytes))
        recovery.bytesRead(trailer.span)
        recovery.bytesRead(bytes.span)
        guard case .recovered(var segment) = try #require(recovery.outcome) else {
            throw DiskFormatError.badMagic
        }
        segment.needsFooter = !isClosed
        return segment
    }

    private func entry(
        _ name: UInt8, at unit: UInt32, count: UInt64, lastAccess: UInt32 = 1_000
    ) -> SegmentFooter.Entry {
        SegmentFooter.Entry(
            digest: self.name(name).digest, offsetUnits: unit, units: 4,
            invalidationVersion: InvalidationVersion(epoch: 1, count: count),
            lastAccess: lastAccess, accessCount: 300)
    }

    private func name(_ byte: UInt8) -> EntryName {
        EntryName([UInt8](repeating: byte, count: 32).span)
    }

    private func kept(
        _ segment: SegmentRecovery.RecoveredSegment, least: UInt32 = 0, newest: UInt32 = 0
    ) -> [(digest: EntryDigest, entry: DiskEntry)] {
        var kept: [(digest: EntryDigest, entry: DiskEntry)] = []
        LogRecovery(leastAccess: least)
            .recover(segment, at: 7, newestAccess: newest) { kept.append(($0, $1)) }
        return kept
    }

    @Test("Records are recovered in order, with their queue, location and use")
    func order() throws {
        let found = kept(
            try segment([entry(1, at: 64, count: 0), entry(2, at: 68, count: 0)]))
        #expect(found.map(\.digest) == [name(1).digest, name(2).digest])
        let first = found[0].entry
        #expect(first.location == DiskLocation(segment: 7, offsetUnits: 64))
        #expect(first.lengthUnits == 4 && first.flags == .inMain)
        #expect(first.accessCount == .max && first.lastAccess == 1_000)
    }

    @Test("Expired records are skipped; in an unclosed segment the newest access counts")
    func age() throws {
        let entries = [
            entry(1, at: 64, count: 0, lastAccess: 999),
            entry(2, at: 68, count: 0, lastAccess: 1_000),
            entry(3, at: 72, count: 0, lastAccess: 5_000),
        ]
        let closed = kept(try segment(entries), least: 1_000, newest: 3_000)
        #expect(closed.map(\.entry.lastAccess) == [1_000, 5_000])
        let open = kept(try segment(entries, isClosed: false), least: 1_000, newest: 3_000)
        #expect(open.map(\.entry.lastAccess) == [3_000, 3_000, 5_000])
        let none = kept(try segment(entries, isClosed: false), least: 6_000, newest: 3_000)
        #expect(none.isEmpty)
    }

    @Test("A footer keeps the least version of the records that it omits")
    func leftOut() throws {
        let entries = [entry(1, at: 64, count: 4)]
        for (leftOut, least) in [(nil, 4), (2, 2), (9, 4)] as [(UInt64?, UInt64)] {
            var footer = SegmentFooter(entries: entries, recordsEnd: 1 << 16, sequence: 1)
            footer.leastOmittedVersion = leftOut.map { InvalidationVersion(epoch: 1, count: $0) }
            let bytes = footer.bytes(salt: 2, segmentBytes: 1 << 20)
            let read = try SegmentFooter(bytes.span, header: header)
            #expect(read.leastVersion == InvalidationVersion(epoch: 1, count: least))
            #expect(read.leastOmittedVersion == (leftOut == 2 ? footer.leastOmittedVersion : nil))
        }
        let empty = SegmentFooter(entries: [], recordsEnd: 4096, sequence: 1)
        let bytes = empty.bytes(salt: 2, segmentBytes: 1 << 20)
        let read = try SegmentFooter(bytes.span, header: header)
        #expect(read == empty && read.leastVersion == .last)
    }
}
