import Ground
import HTTPRules
import Serving

/// A lookup that is driven by a script: each line is an event, and its result the steps and
/// effects.
struct LookupScript {
    /// A line that cannot be parsed.
    struct Unknown: Error, CustomStringConvertible {
        let description: String
    }

    private var lookup = LookupScript.made(Lookup.Options())
    private var peers: Lookup.Peers?
    private var readers: [String: Fetch.ReaderID] = [:]
    private var now = Instant.zero

    private static func made(_ options: Lookup.Options) -> Lookup {
        Lookup(
            options,
            Fetch(
                request: .accepting("jpeg"), windowBytes: 1_000, keptBytesMax: 100_000,
                patience: .seconds(2)))
    }

    /// Runs one line; returns the resulting steps and effects, which may be empty.
    mutating func play(_ line: String) throws -> String {
        let words = line.split(separator: " ").map(String.init)
        let before = lookup.step
        var effects: [LookupEffect] = []
        var results: [String] = []
        if words.count > 1, words[1] == "says" {
            let reply = try reply(words.dropFirst(2).joined(separator: " "))
            lookup.replied(Self.node(words[0]), reply, now, effects: &effects)
        } else if try !lookFurther(words, &effects) {
            results = try answer(words, &effects)
        }
        let hasMoved = before != lookup.step && words[0] != "fetch"
        let step = hasMoved ? ["at \(Self.text(lookup.step))"] : []
        return (step + results + effects.map(Self.text)).joined(separator: ", ")
    }

    // MARK: Finding the response

    /// Runs an event of the search; false if the line is no such event.
    private mutating func lookFurther(
        _ words: [String], _ effects: inout [LookupEffect]
    ) throws -> Bool {
        switch words[0] {
        case "fetch":
            var options = Lookup.Options()
            options.isExclusive = words.contains("alone")
            options.isProbe = words.contains("probe")
            options.isResumption = words.contains("resumption")
            options.skipsPeers = words.contains("skips-peers")
            options.isForPeer = words.contains("for-peer")
            self = LookupScript()
            lookup = Self.made(options)
        case "peers":
            let leaving = words.drop { $0 != "leaving" }.dropFirst()
            let names = words.dropFirst().prefix { $0 != "leaving" }
            peers = Lookup.Peers(
                me: Self.node("me"),
                preference: names.map { name in
                    let isReachable = !name.hasSuffix("!")
                    return .init(
                        Self.node(isReachable ? name : String(name.dropLast())),
                        isReachable: isReachable)
                }, leaving: leaving.map(Self.node))
        case "begins": lookup.started(readsDisk: words.contains("disk"), effects: &effects)
        case "absent": lookup.diskMissed(effects: &effects)
        case "beyond":
            lookup.peersResolved(
                peers, onlyProbes: words.contains("part"), now, effects: &effects)
        case "gone": lookup.lost(Self.node(words[1]), now, effects: &effects)
        case "peer-waits": lookup.peerJoined(now, effects: &effects)
        case "unfit": lookup.peerResponseRejected(effects: &effects)
        case "cancel": lookup.cancelled(effects: &effects)
        case "end": lookup.ended()
        case "wait":
            now = now + .milliseconds(Int64(words[1]) ?? 0)
            lookup.deadlineReached(now, effects: &effects)
        default: return false
        }
        return true
    }

    private func reply(_ text: String) throws -> OwnerSearch.Reply {
        switch text {
        case "held": .found
        case "fetching": .fetching
        case "absent": .notFound
        case "fetch yourself": .declined
        case "behind": .lagging
        case "origin failed": .originFailed
        case "origin refused": .originErrorResponse
        default: throw Unknown(description: text)
        }
    }

    // MARK: The response and its readers

    private mutating func answer(
        _ words: [String], _ effects: inout [LookupEffect]
    ) throws -> [String] {
        switch words[0] {
        case "join":
            let candidate = Lookup.Candidate(
                .accepting(words.contains("webp") ? "webp" : "jpeg"),
                hasControl: words.contains("control"),
                wantsValidation: words.contains("validating"))
            guard let reader = lookup.join(candidate) else { return ["refused"] }
            readers[words[1]] = reader
            return ["joined"]
        case "head":
            lookup.fetch.responseHeadReceived(
                Fetch.Disposition(
                    isKept: !words.contains("unkept"), isShared: !words.contains("unshared"),
                    nominated: Self.nominated(words), validity: validity(words)),
                effects: &effects)
        case "confirmed":
            lookup.fetch.storedResponseUsed(
                isShared: !words.contains("unshared"), validity: validity(words),
                effects: &effects)
        case "body": lookup.fetch.bodyReceived(Int(words[1]) ?? 0, effects: &effects)
        case "whole": lookup.fetch.completed(effects: &effects)
        case "failed": lookup.fetch.failed(nominated: Self.nominated(words), effects: &effects)
        case "narrowed": lookup.fetch.limitedToPart(effects: &effects)
        case "lost":
            lookup.lost(canBeResumed: words.contains("resumable"), effects: &effects)
        case "reads":
            guard let reader = readers[words[1]] else { throw Unknown(description: words[1]) }
            let step = lookup.fetch.nextStep(for: reader, limit: 1_000)
            if case .read(_, let bytes) = step {
                lookup.fetch.readerAdvanced(reader, by: bytes, effects: &effects)
            }
            return [Self.text(step)]
        case "leaves":
            guard let reader = readers.removeValue(forKey: words[1]) else {
                throw Unknown(description: words[1])
            }
            lookup.fetch.readerLeft(reader, effects: &effects)
        default: throw Unknown(description: words.joined(separator: " "))
        }
        return []
    }

    private static func nominated(_ words: [String]) -> FieldNames {
        FieldNames(words.contains("varies") ? ["Accept"] : [])
    }

    private func validity(_ words: [String]) -> Fetch.Validity {
        words.contains("void") ? .unusable : words.contains("overtaken") ? .mustRevalidate : .valid
    }

    // MARK: Text

    /// The node called by a letter, or `me`.
    private static func node(_ name: String) -> NodeID {
        name == "me"
            ? NodeID(low: 0, high: 0)
            : NodeID(low: UInt64(name.utf8.first ?? 0), high: 0)
    }

    private static func name(_ node: NodeID) -> String {
        node.low == 0 ? "me" : String(decoding: [UInt8(node.low)], as: UTF8.self)
    }

    private static func text(_ step: Lookup.Step) -> String {
        switch step {
        case .notStarted: "begun"
        case .disk: "disk"
        case .peers: "owner"
        case .resumption(let attempt): "resumption \(attempt)"
        case .origin: "origin"
        case .finished: "the end"
        }
    }

    private static func text(_ effect: LookupEffect) -> String {
        switch effect {
        case .readDisk: "read disk"
        case .resolvePeers: "look beyond"
        case .sendPeerQuery(let node, .get): "get from \(name(node))"
        case .sendPeerQuery(let node, .probe): "probe \(name(node))"
        case .cancelPeerQuery(let node): "cancel \(name(node))"
        case .acceptPeerResponse(let node): "take from \(name(node))"
        case .fetchFromOrigin: "ask origin"
        case .resume(let skipsPeers): skipsPeers ? "resume from origin" : "resume from peers"
        case .reportMiss: "refuse"
        case .wakeReaders: "wake readers"
        case .updateFlow: "pace"
        case .abort: "break off"
        case .releasePrefix: "drop head"
        case .stopStoring: "stop keeping"
        }
    }

    private static func text(_ step: ReaderStep) -> String {
        switch step {
        case .wait: "waits"
        case .read(let start, let count): "takes \(start)..<\(start + UInt64(count))"
        case .finish: "has all"
        case .restart(let alone): alone ? "begins anew, alone" : "begins anew"
        case .abort: "is broken off"
        case .fail: "is refused"
        }
    }
}

extension RequestFields {
    /// The fields of a request for an image of one type.
    static func accepting(_ type: String) -> RequestFields {
        RequestFields(serialized: Array("GET / HTTP/1.1\r\nAccept: image/\(type)\r\n".utf8))
    }
}
