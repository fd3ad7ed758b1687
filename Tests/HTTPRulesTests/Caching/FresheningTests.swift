import Ground
import HTTPRules
import Testing

private let sunday = WallTime(seconds: 784_111_777)
private let sundayText = "Sun, 06 Nov 1994 08:49:37 GMT"
private let later = "Sun, 06 Nov 1994 08:49:38 GMT"

/// A stored response with tag, Last-Modified and Date.
private func stored(_ tag: String, _ modified: WallTime? = nil, date: Int64 = 0) -> Validators {
    Validators(entityTag: tag.bytes, lastModified: modified, date: WallTime(seconds: date))
}

@Suite("RFC 9111 §4.3.4: the stored responses that a 304 freshens")
struct FresheningTests {
    private static let table: [([Validators], [String], [Int])] = [
        // A strong tag: all that have it, the most recent first.
        ([stored("\"a\"")], ["ETag: \"a\""], [0]), ([stored("\"a\"")], ["ETag: \"b\""], []),
        ([stored("\"a\""), stored("\"b\""), stored("\"a\"", date: 5)], ["ETag: \"a\""], [2, 0]),
        ([stored("\"a\""), stored("\"a\"")], ["ETag: \"a\""], [0, 1]),
        ([stored("W/\"a\"")], ["ETag: \"a\""], []), ([stored("")], ["ETag: \"a\""], []),
        // A weak tag: the most recent.
        ([stored("\"a\""), stored("W/\"a\"", date: 5)], ["ETag: W/\"a\""], [1]),
        ([stored("\"a\"", date: 9), stored("W/\"a\"", date: 5)], ["ETag: W/\"a\""], [0]),
        ([stored("\"b\"")], ["ETag: W/\"a\""], []),
        // A date without a tag: the most recent.
        ([stored("", sunday)], ["Last-Modified: \(sundayText)"], [0]),
        ([stored("\"a\"", sunday)], ["Last-Modified: \(sundayText)"], [0]),
        ([stored("", sunday)], ["Last-Modified: \(later)"], []),
        ([stored("", sunday), stored("", sunday, date: 1)], ["Last-Modified: \(sundayText)"], [1]),
        ([stored("\"a\"")], ["Last-Modified: \(sundayText)"], [0]),
        ([stored("\"a\""), stored("\"b\"")], ["Last-Modified: \(sundayText)"], []),
        // The tag takes precedence over the date.
        ([stored("\"a\"", sunday)], ["ETag: \"a\"", "Last-Modified: \(later)"], [0]),
        ([stored("\"a\"", sunday)], ["ETag: \"b\"", "Last-Modified: \(sundayText)"], []),
        // No valid validator: the response that was validated, if it was a single one.
        ([stored("\"a\"")], [], [0]), ([stored("\"a\""), stored("\"b\"")], [], []), ([], [], []),
        ([stored("\"a\"")], ["ETag: a"], [0]), ([stored("\"a\"")], ["Last-Modified: x"], [0]),
    ]

    @Test(
        "A strong tag selects all matching responses, a weak validator the most recent",
        arguments: table)
    func confirmed(stored: [Validators], fields: [String], expected: [Int]) {
        let response = ResponseHead(status: 304, fields: fields)
        #expect(
            Freshening.responsesToUpdate(by: response, of: stored, received: sunday) == expected)
    }
}

@Suite("RFC 9111 §4.3.5: the effect of a HEAD response on a stored GET response")
struct HeadFindingTests {
    private static let tagged = stored("\"a\"", sunday)
    private static let bare = stored("")
    private static let table: [(UInt16, [String], UInt16, Validators, HeadFreshening)] = [
        (200, [], 200, tagged, .update), (200, ["ETag: \"a\""], 200, tagged, .update),
        (200, ["ETag: W/\"a\""], 200, tagged, .update),
        (200, ["ETag: \"b\""], 200, tagged, .invalidate),
        (200, ["ETag: \"a\""], 200, bare, .invalidate),
        (200, ["ETag: nonsense"], 200, tagged, .update),
        (200, ["Last-Modified: \(sundayText)"], 200, tagged, .update),
        (200, ["Last-Modified: \(later)"], 200, tagged, .invalidate),
        (200, ["Last-Modified: \(later)"], 200, bare, .invalidate),
        (200, ["Last-Modified: x"], 200, tagged, .update),
        (200, ["ETag: \"a\"", "Last-Modified: \(later)"], 200, tagged, .invalidate),
        (200, ["Content-Length: 7"], 200, tagged, .update),
        (200, ["Content-Length: 8"], 200, tagged, .invalidate),
        (200, ["Content-Length: x"], 200, tagged, .update),
        (200, ["Content-Length: 7", "ETag: \"b\""], 200, tagged, .invalidate),
        (404, [], 404, bare, .update), (404, [], 200, tagged, .invalidate),
        (410, [], 200, tagged, .invalidate), (301, [], 200, tagged, .invalidate),
        (200, [], 404, bare, .invalidate), (304, [], 200, tagged, .noEffect),
        (500, [], 200, tagged, .noEffect), (503, [], 200, tagged, .noEffect),
        (405, [], 200, tagged, .noEffect), (401, [], 200, tagged, .noEffect),
        (403, [], 200, tagged, .noEffect), (412, [], 200, tagged, .noEffect),
        (429, [], 200, tagged, .noEffect), (206, [], 200, tagged, .noEffect),
    ]

    @Test(
        "Equal metadata updates, different metadata invalidates, an error has no effect",
        arguments: table)
    func finding(
        status: UInt16, fields: [String], storedStatus: UInt16, validators: Validators,
        expected: HeadFreshening
    ) {
        let found = HeadFreshening(
            ResponseHead(status: status, fields: fields), stored: storedStatus,
            validators: validators, size: 7, received: sunday)
        #expect(found == expected)
    }
}

@Suite("RFC 9111 §4.3.1: the validators of a conditional request")
struct ValidationTests {
    private func validation(_ responses: [[String]]) -> Validation {
        var validation = Validation()
        for fields in responses {
            let response = ResponseHead(status: 200, fields: fields)
            let head = StoredHead(site: fields)
            let modified = response.first(.lastModified).flatMap {
                HTTPDate.parse(response.bytes.span, at: $0.range, now: sunday)
            }
            let facts = EntryMetadata(
                size: 1, generatedAt: .zero, freshUntil: .zero, flags: [], lastModified: modified,
                date: sunday, entityTag: head.entityTag)
            validation.add(head.bytes, metadata: facts)
            #expect(Validators(head.bytes, metadata: facts).lastModified == modified)
        }
        return validation
    }

    private static let table: [([[String]], [String], String)] = [
        ([], [], ""), ([["A: 1"]], [], ""), ([["ETag: \"a\""]], ["\"a\""], ""),
        ([["ETag: W/\"a\"", "Last-Modified: \(sundayText)"]], ["W/\"a\""], sundayText),
        ([["Last-Modified: \(sundayText)"]], [], sundayText),
        // As the origin wrote it, if it is a valid date.
        ([["Last-Modified: Sun Nov  6 08:49:37 1994"]], [], "Sun Nov  6 08:49:37 1994"),
        ([["Last-Modified: some day", "ETag: tag"]], [], ""),
        ([["ETag: \"a\""], ["ETag: \"b\""], ["ETag: \"a\""]], ["\"a\"", "\"b\""], ""),
        (
            [["ETag: \"a\"", "Last-Modified: \(sundayText)"], ["Last-Modified: \(sundayText)"]],
            ["\"a\""], ""
        ),
    ]

    @Test("Each tag once, and a date if a single response is validated", arguments: table)
    func validators(responses: [[String]], tags: [String], modified: String) {
        let found = validation(responses)
        #expect(found.entityTags.map(\.text) == tags && found.lastModified.text == modified)
        #expect(found.isEmpty == (tags.isEmpty && modified.isEmpty))
    }

    @Test("The number of tags is limited")
    func limit() {
        let found = validation((0..<40).map { ["ETag: \"\($0)\""] })
        #expect(found.entityTags.count == Validation.tagsMax)
        #expect(found.entityTags.first?.text == "\"0\"")
    }
}
