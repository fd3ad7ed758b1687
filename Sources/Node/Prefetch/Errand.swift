import Admin
import FoundationEssentials
import Ground
import HTTPRules
import NIOCore
import Origin
import Store
import Wire

/// One request that the node makes of itself, through a door like a client's, so that keys, owners,
/// coalescing and limits are theirs; of the answer only what it says is kept.
///
/// Confined to the loop of its hall, which holds it until it is over.
final class Errand: Outlet, ClientConnection, @unchecked Sendable {
    /// What came of it.
    struct Report {
        /// Nil if there was no whole answer.
        var status: UInt16?
        var part = CachePart.none
        var bodyBytes: UInt64 = 0
        /// The beginning of the body, as far as it is wanted.
        var body: [UInt8] = []
        /// There was more.
        var isBodyCut = false
        /// The answer's head, as HTTP/1.1 writes it.
        var head: [UInt8] = []
    }

    private let hall: Hall
    private let door: Door
    private let bodyBytesMax: Int
    private var report = Report()
    private var told: ((Report) -> Void)?

    let side = Door.Side.errand
    var client: Client? { door.client }
    var idleSince: Instant? { nil }
    var place = 0
    let queuedBytes = 0

    /// Keeps so many bytes of the answer's body.
    init(on hall: Hall, bodyBytesMax: Int) {
        self.hall = hall
        self.bodyBytesMax = bodyBytesMax
        door = Door(on: hall, side: .errand, carriage: .http1)
    }

    /// Asks, on the loop; `told` is called once, not before this returns.
    func begin(_ question: ErrandQuestion, _ told: @escaping (Report) -> Void) {
        self.told = told
        hall.opened(self)
        door.outlet = self
        door.client = Client(isSecure: question.isSecure)
        let head = question.head.span
        switch door.parser.parse(head, from: 0) {
        case .head(let end) where end == head.count:
            door.read(head, 0..<end)
            hall.heads.begin()
            door.answer(head, now: SystemClock.now())
        case .head, .incomplete, .refused: over(isWhole: false)
        }
    }

    /// The door is in the midst of its answer: the end waits until it is through.
    private func over(isWhole: Bool) {
        if !isWhole { report.status = nil }
        report.part = door.part
        hall.loop.execute { [self] in
            guard let told = told.take() else { return }
            hall.closed(self)
            door.gone()
            told(report)
        }
    }

    // MARK: Outlet

    func send(head: ByteBuffer) {
        report.head = Array(head.readableBytesView)
        report.status = door.answeredStatus
    }

    func send(interim: ByteBuffer) {}

    func send(body: ByteBuffer) {
        report.bodyBytes += UInt64(body.readableBytes)
        let room = bodyBytesMax - report.body.count
        report.body += body.readableBytesView.prefix(room)
        if body.readableBytes > room { report.isBodyCut = true }
    }

    func beginChunk(bytes: UInt64) {}
    func endChunk() {}
    func endChunks(trailers: [UInt8]) {}
    func answerEnded() { over(isWhole: true) }
    func flush() {}
    func lend(_ resident: Resident) {}
    func bodyWanted() {}
    func bodyGoesOn() {}
    func goOn() {}
    func breakOff() { over(isWhole: false) }

    // MARK: ClientConnection

    func ticked(_ now: Instant) { door.ticked(now) }
    func drain() {}
    func adopt(after old: NodeSettings) {}
    func close() { over(isWhole: false) }
}

extension Errand.Report {
    /// What this is for a prefetch.
    var ending: PrefetchEnding {
        guard let status else {
            return .failed(
                why: "the answer was broken off, or the URL cannot be asked for",
                hasAnswered: false)
        }
        switch status {
        case 200..<300:
            if notes.contains("detail=stored") {
                return .failed(
                    why: "its origin failed, and what is stored is no longer fresh",
                    hasAnswered: false)
            }
            switch part {
            case .hit, .disk, .stale: return .held(bodyBytes: bodyBytes)
            case .none, .miss, .peer, .revalidated, .collapsed, .passed:
                guard isKept else {
                    return .failed(why: "it answered \(status), and the answer is not to be stored")
                }
                return .fetched(bodyBytes: bodyBytes)
            }
        case 503:
            let seconds = field("retry-after").flatMap { Int64($0) }
            return .busy(
                why: words(status), retryAfter: seconds.map(Interval.seconds),
                isOfHost: !isOfNode)
        case 502 where isOriginWide, 504 where isOriginWide:
            return .busy(why: words(status), retryAfter: nil)
        default: return .failed(why: words(status), hasAnswered: status < 500)
        }
    }

    /// What an answer that refuses says of itself.
    private var problem: ProblemReport {
        (try? JSONDecoder().decode(ProblemReport.self, from: Data(body)))
            ?? ProblemReport(ofText: body)
    }

    /// A limit of the node's own was reached.
    private var isOfNode: Bool {
        problem.name.map(PrefetchEnding.namesOfNode.contains) ?? false
    }

    private var isOriginWide: Bool {
        problem.name.map(OriginFailure.originWideNames.contains) ?? false
    }

    /// Somebody stores it: this node, or the one that gave it.
    private var isKept: Bool {
        let notes = notes
        guard !notes.isEmpty else { return false }
        return !notes.contains { $0.hasPrefix("fwd=") } || notes.contains("stored")
            || notes.contains("detail=peer")
    }

    /// The parameters of Cache-Status; what stands in quotes parts none.
    private var notes: [String] {
        var notes = [""]
        var isQuoted = false
        var isEscaped = false
        for character in field("cache-status") ?? "" {
            if character == "\"", !isEscaped { isQuoted.toggle() }
            isEscaped = isQuoted && character == "\\" && !isEscaped
            if character == ";", !isQuoted {
                notes.append("")
            } else if character != " " || isQuoted {
                notes[notes.count - 1].append(character)
            }
        }
        return notes.filter { !$0.isEmpty }
    }

    /// The value of the last line with this name, which is in lower case.
    private func field(_ name: String) -> String? {
        for line in head.split(separator: 0x0A).reversed() {
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")),
                String(decoding: line[..<colon], as: UTF8.self).lowercased() == name
            else { continue }
            let value = line[(colon + 1)...].drop { $0 == 0x20 }
            return String(decoding: value.prefix { $0 != 0x0D }, as: UTF8.self)
        }
        return nil
    }

    private func words(_ status: UInt16) -> String {
        let sentence = problem.sentence
        return sentence.isEmpty ? "it answered \(status)" : "it answered \(status): \(sentence)"
    }
}
