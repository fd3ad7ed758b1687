import Ground
import NIOHTTP1
import Testing
import Trials
import Wire

/// Comparison with llhttp: what llhttp refuses is refused here, and what both accept has the same
/// meaning.
///
/// Not compared, because llhttp leaves HTTP or refuses them: CONNECT, Upgrade, and HTTP/1.2 and
/// later. A method that llhttp does not know is refused by it and accepted here as a token. For
/// llhttp an interim response with `Connection: close`, or in HTTP/1.0, is the last one; here the
/// final response is awaited and the connection closed after it.
@Suite struct DifferentialTests {
    static let batches = Array(0..<10)
    static let perBatch = Trials.count(1_500)

    @Test("Requests are read as by llhttp, or refused", arguments: batches)
    func requests(_ batch: Int) throws {
        var accepted = 0
        for number in 0..<Self.perBatch {
            let seed = UInt64(batch * Self.perBatch + number)
            var generator = MessageGenerator(seed: seed)
            let bytes = generator.requests()
            let ours = Reading.requests(bytes, stops: [bytes.count])
            let theirs = try Reference.requests(bytes)
            accepted += ours.whole
            if isOnlyUnknownMethod(ours, theirs) { continue }
            if let difference = difference(ours, theirs) {
                Issue.record("seed \(seed): \(difference)\n\(shown(bytes))\n\(ours)\n\(theirs)")
            }
            guard ours.ending == .waiting, theirs.error != nil else { continue }
            let more = bytes + latin1("\r\n\r\n\r\n\r\n")
            let later = Reading.requests(more, stops: [more.count])
            if later.whole > theirs.whole {
                Issue.record("seed \(seed): llhttp refused what was accepted\n\(shown(bytes))")
            }
        }
        #expect(accepted > Self.perBatch / (Trials.isReduced ? 3 : 2))
    }

    @Test("Responses are read as by llhttp, or refused", arguments: batches)
    func responses(_ batch: Int) throws {
        var accepted = 0
        for number in 0..<Self.perBatch {
            let seed = UInt64(1_000_000 + batch * Self.perBatch + number)
            var generator = MessageGenerator(seed: seed)
            let bytes = generator.responses()
            let isHead = number % 8 == 0
            let ours = Reading.responses(bytes, stops: [bytes.count], requestIsHead: isHead)
            let theirs = try Reference.responses(bytes, requestIsHead: isHead)
            accepted += ours.whole
            let found = difference(ours, theirs, comparesPersistence: !isHead)
            if let found {
                Issue.record("seed \(seed): \(found)\n\(shown(bytes))\n\(ours)\n\(theirs)")
            }
            guard ours.ending == .waiting, theirs.error != nil, !endsInInterim(theirs) else {
                continue
            }
            let more = bytes + latin1("\r\n\r\n\r\n\r\n")
            let later = Reading.responses(more, stops: [more.count], requestIsHead: isHead)
            if later.whole > theirs.whole {
                Issue.record("seed \(seed): llhttp refused what was accepted\n\(shown(bytes))")
            }
        }
        #expect(accepted > Self.perBatch / (Trials.isReduced ? 3 : 2))
    }

    /// The difference between two readings of the same bytes, or `nil`.
    private func difference(
        _ ours: Reading, _ theirs: Reference, comparesPersistence: Bool = true
    ) -> String? {
        for (index, message) in ours.messages.enumerated() {
            guard index < theirs.heads else { return "head \(index) was refused by llhttp" }
            let other = theirs.messages[index]
            let start = String(decoding: message.start, as: UTF8.self)
            if Array(start.utf8) != Array(other.start.utf8) { return "start of \(index)" }
            if message.isWhole && !other.isWhole { return "body \(index) was refused by llhttp" }
            if message.isWhole && message.body != other.body { return "body \(index)" }
            if start.hasPrefix("1") {
                if other.isPersistent { continue }
                return nil
            }
            if message.isHTTP10 != other.isHTTP10 { return "version of \(index)" }
            if !same(message.fields, other.fields) { return "fields of \(index)" }
            guard comparesPersistence, message.isPersistent != other.isPersistent else { continue }
            // With both options in HTTP/1.0 llhttp keeps the connection, and RFC 9112 §9.3 closes
            // it.
            guard message.isHTTP10, other.isPersistent, saysClose(other) else {
                return "persistence of \(index)"
            }
        }
        if ours.ending == .waiting && theirs.error == nil {
            if ours.heads != theirs.heads { return "number of heads" }
            if ours.whole != theirs.whole { return "number of messages" }
        }
        return nil
    }

    private func same(_ ours: [ReadField], _ theirs: [(name: String, value: String)]) -> Bool {
        guard ours.count == theirs.count else { return false }
        for (field, other) in zip(ours, theirs) {
            guard String(decoding: field.name, as: UTF8.self).utf8.elementsEqual(other.name.utf8),
                String(decoding: field.value, as: UTF8.self).utf8.elementsEqual(other.value.utf8)
            else { return false }
        }
        return true
    }

    private func saysClose(_ message: Reference.Message) -> Bool {
        message.fields.contains {
            $0.name.lowercased() == "connection" && $0.value.lowercased().contains("close")
        }
    }

    /// True if the last response is an interim one after which llhttp expects no other.
    private func endsInInterim(_ theirs: Reference) -> Bool {
        guard let last = theirs.messages.last else { return false }
        return last.start.hasPrefix("1") && !last.isPersistent
    }

    private func isOnlyUnknownMethod(_ ours: Reading, _ theirs: Reference) -> Bool {
        guard case HTTPParserError.invalidMethod? = theirs.error as? HTTPParserError else {
            return false
        }
        let known = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PURGE"]
        return ours.messages.dropFirst(theirs.whole).prefix(1).contains { message in
            !known.contains { message.start.starts(with: latin1($0 + " ")) }
        }
    }

    private func shown(_ bytes: [UInt8]) -> String {
        String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) })).debugDescription
    }
}
