import Admin
import Cluster
import FoundationEssentials
import Ground
import HTTPRules

/// Reads the body of a purge as a node does, and writes it again.
func readBody(_ body: [UInt8]) {
    let request: PurgeRequest
    do {
        request = try JSONDecoder().decode(PurgeRequest.self, from: Data(body))
    } catch {
        let problem = PurgeError(decodingError: error).problem
        precondition((400..<500).contains(problem.status))
        return
    }
    precondition((1...PurgeRequest.targetsMax).contains(request.targets.count))
    precondition(request.id.map { 1...PurgeRequest.idBytesMax ~= $0.count } ?? true)
    precondition(request.timeout.map(PurgeRequest.timeoutRange.contains) ?? true)
    let again = try? JSONDecoder().decode(PurgeRequest.self, from: Data(request.body.utf8))
    precondition(again == request, "another purge after encoding it again")
    issue(request)
}

/// Encodes the request as a record of the log.
private func issue(_ request: PurgeRequest) {
    let targets = request.targets.expanded(.none)
    let purge = Purge(request.isSoft ? .soft : .hard, targets)
    let invalidation = Invalidation(id: request.id ?? [1], .purge(purge))
    guard let content = try? invalidation.content() else {
        // A few names fill a record only if they are long.
        preconditionFailure("no record has room for \(targets.count) targets")
    }
    precondition(Invalidation(content: content.span) == invalidation)
    let record = InvalidationRecord(
        RecordID(stream: ProcessID(high: 1, low: 2), number: 3), content: content)
    precondition(InvalidationRecord.read(record.bytes.span) == record)
}

/// Reads a request below the path of purges: a method and a target in one line.
func readTarget(_ line: [UInt8]) {
    let words = String(decoding: line, as: UTF8.self).split(separator: " ", maxSplits: 1)
    guard words.count == 2 else { return }
    let target = AdminOperation.operation(.issuePurge).path + words[1]
    guard
        case .operation(let operation, let arguments) = AdminRoute(
            method: String(words[0]), target: target)
    else { return }
    if operation.id == .getReceipt, let name = ReceiptID(arguments[0][...]) {
        let path = words[1].prefix { $0 != "?" }
        precondition(path == "/\(name)", "two spellings of one receipt")
        precondition(name.number > 0 && ReceiptID(name.description) == name)
    }
    let query = target.drop { $0 != "?" }.dropFirst()
    do throws(AdminQuery.QueryError) {
        let query = try AdminQuery(query, operation.parameters)
        guard operation.id == .issuePurge, let options = try? PurgeOptions(query) else { return }
        precondition(PurgeRequest.timeoutRange.contains(options.resolved.timeout))
    } catch {
        precondition((400..<500).contains(error.problem.status))
    }
}

extension PurgeRequest {
    /// The body with all members of the request.
    fileprivate var body: String {
        var members = ["\"mode\":\"\(isSoft ? "soft" : "hard")\""]
        if let id { members.append("\"id\":\(Self.quoted(id))") }
        if let wait { members.append("\"wait\":\"\(wait.rawValue)\"") }
        if let timeout { members.append("\"timeout_ms\":\(timeout.milliseconds)") }
        let list = targets.map { target in
            switch target {
            case .url(let name): "{\"url\":\(Self.quoted(Self.url(name)))}"
            case .prefix(let host, let path):
                "{\"prefix\":\(Self.quoted(Self.url(host) + path))}"
            case .tag(let tag): "{\"tag\":\(Self.quoted(tag))}"
            case .everything: "{\"everything\":true}"
            }
        }
        members.append("\"targets\":[\(list.joined(separator: ","))]")
        return "{\(members.joined(separator: ","))}"
    }

    /// Returns a URL that has this name, with the scheme that omits its default port.
    private static func url(_ name: [UInt8]) -> [UInt8] {
        let isHTTP = name.prefix { $0 != UInt8(ascii: "/") }.suffix(3).elementsEqual(":80".utf8)
        return Array((isHTTP ? "https://" : "http://").utf8) + name
    }

    /// Returns a JSON string (RFC 8259 §7).
    private static func quoted(_ text: [UInt8]) -> String {
        var quoted: [UInt8] = []
        for byte in text {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): quoted += [UInt8(ascii: "\\"), byte]
            case UInt8(ascii: "\t"): quoted += Array("\\t".utf8)
            default: quoted.append(byte)
            }
        }
        return "\"\(String(decoding: quoted, as: UTF8.self))\""
    }
}
