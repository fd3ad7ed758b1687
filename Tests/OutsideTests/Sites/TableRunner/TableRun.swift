import Harness

/// The run of one case: sends its requests and compares the responses with the expectations.
struct TableRun {
    private let stage: TableStage
    private let one: TableCase
    private let words: TableWords
    private let script: TableScript

    init(_ one: TableCase, path: String, on stage: TableStage) {
        self.stage = stage
        self.one = one
        words = TableWords(path: path, host: one.host, originPort: stage.origin.port)
        script = TableScript(words)
    }

    /// Runs the case and returns every failed expectation with what was seen; empty if it holds.
    func complaints() throws -> [String] {
        let script = script
        stage.scripts.set(words.path) { script.answer($0) }
        defer { stage.scripts.set(words.path, nil) }
        var all: [String] = []
        for (index, exchange) in one.exchanges.enumerated() {
            var found = try play(exchange)
            if exchange.isRepeated {
                _ = try Deadline.seconds(10).waitUntil {
                    if !found.isEmpty { found = try play(exchange) }
                    return found.isEmpty
                }
            }
            all += found.map { "exchange \(index + 1): \($0)" }
        }
        return all
    }

    private func play(_ exchange: TableExchange) throws -> [String] {
        stage.settle()
        script.begin(exchange.answers)
        let connection = try stage.node.connect()
        try connection.socket.send(bytes(of: exchange))
        let response = connection.readResponse(method: exchange.method, seconds: 20)
        if exchange.expectations.contains(where: {
            if case .background = $0 { true } else { false }
        }) {
            _ = Deadline.seconds(10).waitUntil { !script.requests.isEmpty }
        }
        let check = TableCheck(
            exchange: exchange, response: response, script: script, origin: stage.origin,
            words: words, isClustered: !stage.owners.isEmpty)
        let found = check.complaints()
        guard !found.isEmpty else { return [] }
        let asked = script.requests.map { request in
            let lines = request.fields.lines.map { "\($0.name): \($0.value)" }
            return "\(request.method) \(request.target) [\(lines.joined(separator: ", "))]"
        }
        return found + [
            "it was: \(response) body \(response.text.prefix(200).debugDescription)",
            "the origin was asked \(asked.count) times: \(asked)",
        ]
    }

    private func bytes(of exchange: TableExchange) -> [UInt8] {
        let target =
            exchange.suffix.hasPrefix("=")
            ? words.filled(String(exchange.suffix.dropFirst()))
            : words.path + words.filled(exchange.suffix)
        var fields = exchange.fields.map(words.filled)
        let isChunked = fields.contains("Transfer-Encoding: chunked")
        let body = exchange.body.map { Array(words.filled($0).utf8) }
        if let body, !isChunked { fields.append("Content-Length: \(body.count)") }
        let head = HTTPConnection.request(
            target, method: exchange.method, host: one.host, fields: fields)
        guard let body else { return head }
        return head + (isChunked ? Chunks.bytes(body, trailers: exchange.trailers) : body)
    }
}
