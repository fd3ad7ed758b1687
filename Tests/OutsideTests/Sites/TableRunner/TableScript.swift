import Foundation
import Harness

/// The origin's side of one case: its next responses and the requests it received.
final class TableScript: Sendable {
    private struct State {
        var queue: [TableAnswer] = []
        var current = TableAnswer()
        var requests: [OriginRequest] = []
        /// The number of the first response of the exchange.
        var first = 1
    }

    private let state = LockedBox(State())
    private let words: TableWords
    /// Never opened: responses wait here until the origin ends.
    private let never = Gate()

    init(_ words: TableWords) {
        self.words = words
    }

    /// Starts an exchange with these responses.
    func begin(_ responses: [TableAnswer]) {
        state.change { state in
            state.queue = responses
            state.first = state.requests.count + 1
        }
    }

    /// The requests since the exchange started.
    var requests: [OriginRequest] {
        let state = state.value
        return Array(state.requests.dropFirst(state.first - 1))
    }

    /// The number of the exchange's first response.
    var firstNumber: Int { state.value.first }

    /// Returns the default body of the response with this number.
    func body(_ number: Int) -> String { "answer \(number) of \(words.path)" }

    func answer(_ request: OriginRequest) -> OriginResponse {
        let (response, number) = state.change { state in
            state.requests.append(request)
            if !state.queue.isEmpty { state.current = state.queue.removeFirst() }
            return (state.current, state.requests.count)
        }
        let isHead = request.method == "HEAD"
        let interim = response.interim.flatMap { head($0, bodyBytes: nil) }
        var bytes = interim
        let body = Array((response.body.map(words.filled) ?? self.body(number)).utf8)
        bytes += head(response, bodyBytes: response.hasBody ? body.count : nil)
        if response.hasBody, !isHead { bytes += framed(body, response) }
        var result = OriginResponse.raw(bytes)
        switch response.ending {
        case .whole: if response.isEndedByClose { result.truncation = (0, .close) }
        case .close: (result.raw, result.truncation) = ([], (0, .close))
        case .reset: (result.raw, result.truncation) = ([], (0, .reset))
        case .hang: result.headPauses = [.gate(never)]
        case .cut: (result.raw, result.truncation) = (bytes.dropLast(body.count / 2), (0, .close))
        }
        return result
    }

    private func head(_ response: TableAnswer, bodyBytes: Int?) -> [UInt8] {
        let usual = response.status == 200 ? "OK" : "Other"
        let reason = response.reason.isEmpty ? usual : response.reason
        var lines = ["HTTP/1.1 \(response.status) \(reason)"]
        lines += response.fields.map(words.filled)
        if response.hasDate, !response.has("Date"), response.status >= 200 {
            lines.append("Date: " + HTTPDateFormat.text(Date()))
        }
        if let bodyBytes {
            if !response.has("Content-Type") { lines.append("Content-Type: text/plain") }
            if response.isEndedByClose {
                lines.append("Connection: close")
            } else if !response.has("Transfer-Encoding"), !response.has("Content-Length") {
                lines.append("Content-Length: \(bodyBytes)")
            }
        }
        return Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)
    }

    private func framed(_ body: [UInt8], _ response: TableAnswer) -> [UInt8] {
        guard response.has("Transfer-Encoding") else { return body }
        return Chunks.bytes(body, trailers: response.trailers)
    }
}

/// Encodes a body in one chunk.
enum Chunks {
    static func bytes(_ body: [UInt8], trailers: [String]) -> [UInt8] {
        let size = body.isEmpty ? "" : String(body.count, radix: 16) + "\r\n"
        let end = body.isEmpty ? "" : "\r\n"
        let tail = trailers.map { $0 + "\r\n" }.joined()
        return Array(size.utf8) + body + Array("\(end)0\r\n\(tail)\r\n".utf8)
    }
}
