import Cluster
import Ground
import Testing

@Suite("A node's summary for its peers")
struct MemberSummaryTests {
    /// The summary that a peer reads from this one.
    private func read(_ summary: MemberSummary) throws -> MemberSummary {
        let read = try PeerFrame.read(summary.frame)
        guard case .summary(let summary)? = read else { throw PeerFault.malformed(.summary) }
        return summary
    }

    /// The payload of the sample with one more field.
    private func payload(with tag: UInt16, _ value: [UInt8]) throws -> [UInt8] {
        var (_, payload) = try PeerFrame.summary(PeerSamples.summary).parts(stream: 0)
        payload.appendLittle(tag)
        payload.appendLittle(UInt16(value.count))
        return payload + value
    }

    @Test("Texts are cut to their limits, and settings to their number")
    func limits() throws {
        let long = String(repeating: "ä", count: 300)
        var summary = MemberSummary(name: long, version: long)
        summary.condition = long
        summary.adminURL = "http://" + String(repeating: "a", count: 300)
        var setting = SharedSetting(long, digest: 1)
        setting.text = long
        summary.settings = Array(repeating: setting, count: 70)
        #expect(summary.frame.count < 12_000)
        let found = try read(summary)
        #expect(found.name == String(repeating: "ä", count: 128) && found.version == found.name)
        #expect(found.condition == found.name && found.adminURL == "")
        #expect(found.settings.count == MemberSummary.settingsMax)
        #expect(found.settings.allSatisfy { $0.name == String(repeating: "ä", count: 32) })
        #expect(found.settings.allSatisfy { $0.text == $0.name && $0.digest == 1 })
    }

    @Test(
        "A URL that is not one of an admin port is omitted",
        arguments: [
            "javascript:alert(1)", "http://a.example/\"onclick=", "ftp://a.example/",
            "http://a .example", "http://a.example/<b>", "//a.example", "http://ä.example",
        ])
    func links(url: String) throws {
        let bytes = try payload(with: 2, Array(url.utf8))
        guard case .summary(let found)? = try PeerFrame.read(.summary, bytes) else {
            Issue.record("no summary")
            return
        }
        #expect(found.adminURL == "")
        #expect(found.name == "node-1")
    }

    @Test("Control characters and marks of direction do not reach an operator's terminal")
    func controls() throws {
        var summary = MemberSummary(name: "a\u{1B}[2Jb\n", version: "1\u{7F}\u{9B}")
        summary.condition = "x\u{202E}y\u{2066}"
        for found in [try read(summary)] {
            #expect(found.name == "a [2Jb " && found.version == "1  " && found.condition == "x y ")
        }
        let bytes = try payload(with: 1, Array("c\u{1B}]0;d\u{7}".utf8))
        guard case .summary(let forged)? = try PeerFrame.read(.summary, bytes) else {
            Issue.record("no summary")
            return
        }
        #expect(forged.name == "c ]0;d ")
    }

    @Test("A setting that is cut, and one setting too many, are faults")
    func faults() throws {
        let values: [[UInt8]] = [
            [], [1, 2, 3], [1, 2, 3, 4, 5, 6, 7, 8], [1, 2, 3, 4, 5, 6, 7, 8, 2, 65],
        ]
        for value in values {
            let bytes = try payload(with: 5, value)
            #expect(PeerFrame.fault(.summary, bytes) == .truncated(.summary))
        }
        var summary = PeerSamples.summary
        summary.settings = Array(repeating: summary.settings[0], count: MemberSummary.settingsMax)
        var (_, bytes) = try PeerFrame.summary(summary).parts(stream: 0)
        #expect(PeerFrame.fault(.summary, bytes) == nil)
        bytes += [5, 0, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0]
        #expect(PeerFrame.fault(.summary, bytes) == .tooLong(.list))
    }

    @Test("An unknown state is a warning")
    func states() throws {
        for (code, state) in [
            (0, .warning), (1, .ready), (2, .warning), (3, .critical), (4, .warning),
            (255, .warning),
        ] as [(UInt8, MemberSummary.State)] {
            var (_, bytes) = try PeerFrame.summary(PeerSamples.summary).parts(stream: 0)
            bytes[2] = code
            guard case .summary(let found)? = try PeerFrame.read(.summary, bytes) else {
                Issue.record("no summary")
                continue
            }
            #expect(found.state == state)
        }
    }

    @Test("Values in another order are the same; every other difference is one")
    func digests() {
        let both = SharedSetting("join", texts: ["a:1", "b:2"])
        #expect(both == SharedSetting("join", texts: ["b:2", "a:1"]))
        #expect(both.text == "a:1 b:2")
        let others = [["a:1"], ["a:1", "b:3"], ["a:1 b:2"], []].map {
            SharedSetting("join", texts: $0)
        }
        #expect(Set(others.map(\.digest) + [both.digest]).count == 5)
        #expect(others[3].text == "none")
    }

    @Test("Settings are compared by digest, blocks of the file only within one version")
    func differences() {
        let own = [
            SharedSetting("fence", texts: ["10s"]), SharedSetting("replicas", texts: ["2"]),
            SharedSetting("sites", digest: 7),
        ]
        var theirs = MemberSummary(name: "b", version: "1")
        theirs.settings = own
        #expect(theirs.differences(from: own, version: "1") == [])
        theirs.settings[0] = SharedSetting("fence", texts: ["20s"])
        theirs.settings[2].digest = 8
        #expect(theirs.differences(from: own, version: "1") == ["fence", "sites"])
        #expect(theirs.differences(from: own, version: "2") == ["fence"])
        // A node that does not announce a setting has no other value of it.
        theirs.settings.removeFirst()
        theirs.settings.append(SharedSetting("later", digest: 1))
        #expect(theirs.differences(from: own, version: "2") == [])
        // As of every field, the last one counts.
        theirs.settings.append(SharedSetting("replicas", texts: ["3"]))
        #expect(theirs.differences(from: own, version: "2") == ["replicas"])
    }
}

@Suite("Summaries on a connection")
struct SummaryLinkTests {
    @Test("A summary arrives once the connection is open, and each one replaces the former")
    func exchange() throws {
        var early = PeerLink(.dialling, hello: .of(1))
        #expect(throws: SendError.notOpen) { try early.send(PeerSamples.summary) }
        var pair = PeerPair()
        var later = PeerSamples.summary
        later.counters.requests += 1
        try pair.dialling.link.send(PeerSamples.summary)
        try pair.dialling.link.send(later)
        pair.run()
        let received = pair.accepting.events.compactMap { event in
            if case .summaryReceived(let summary) = event { summary } else { nil }
        }
        #expect(received == [PeerSamples.summary, later])
        #expect(pair.accepting.fault == nil && pair.accepting.link.skippedFrames == 0)
    }

    @Test("A type that a node does not know is skipped, and the frames behind it are read")
    func unknown() throws {
        var pair = PeerPair()
        var frame = PeerSamples.summary.frame
        // To a node of the first release type 7 is what type 8 is to this one.
        frame[4] = 8
        pair.accepting.receive(frame + PeerSamples.summary.frame)
        #expect(pair.accepting.fault == nil && pair.accepting.link.skippedFrames == 1)
        #expect(pair.accepting.events.last == .summaryReceived(PeerSamples.summary))
    }

    @Test("On a stream, before HELLO and in a flood a summary is a fault")
    func faults() throws {
        var pair = PeerPair()
        var frame = PeerSamples.summary.frame
        frame[8] = 1
        pair.accepting.receive(frame)
        #expect(pair.accepting.fault == .streamOnConnectionFrame(.summary))
        var unmet = PeerEnd(.accepting, hello: .of(1))
        unmet.receive(PeerSamples.summary.frame)
        #expect(unmet.fault == .helloMissing)
        pair = PeerPair()
        let small = MemberSummary(name: "", version: "").frame
        let burst = Array(repeatElement(small, count: 64).joined())
        for _ in 0..<1_024 { pair.accepting.receive(burst) }
        #expect(pair.accepting.fault == nil)
        pair.accepting.receive(small)
        #expect(pair.accepting.fault == .flood)
    }
}

@Suite("The summaries that a node holds")
struct MemberSummaryTableTests {
    private let member = PeerSamples.member
    private let now = Instant.zero + .seconds(1_000)

    private func summary(_ name: String) -> MemberSummary {
        MemberSummary(name: name, version: "1")
    }

    @Test("Each member has its latest summary, with its age, for a minute")
    func age() throws {
        var table = MemberSummaryTable()
        table.receive(summary("a"), from: member, now: now - .seconds(5))
        table.receive(summary("b"), from: member, now: now)
        #expect(table.count == 1)
        let entry = try #require(table[member.id])
        #expect(entry.summary.name == "b")
        #expect(entry.age(of: member.process, now: now + .seconds(60)) == .seconds(60))
        #expect(entry.age(of: member.process, now: now + .milliseconds(60_001)) == nil)
        // A clock that runs backwards makes nothing younger than new.
        #expect(entry.age(of: member.process, now: now - .seconds(1)) == .zero)
    }

    @Test("A restarted member keeps its name, but its counters are no longer true")
    func restart() throws {
        var table = MemberSummaryTable()
        table.receive(summary("a"), from: member, now: now)
        let entry = try #require(table[member.id])
        #expect(entry.age(of: ProcessID(high: 5, low: 5), now: now) == nil)
        #expect(entry.summary.name == "a")
    }

    @Test("A summary is forgotten with its member")
    func forgotten() {
        var table = MemberSummaryTable()
        var other = member
        other.id = NodeID(low: 9, high: 9)
        table.receive(summary("a"), from: member, now: now)
        table.receive(summary("b"), from: other, now: now)
        table.retain([other.id])
        #expect(table[member.id] == nil && table[other.id]?.summary.name == "b")
        table.retain([])
        #expect(table.count == 0)
    }
}
