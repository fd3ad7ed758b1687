import Client
import Testing

@Suite("Text on a terminal")
struct TextLineTests {
    @Test("A node's text cannot move the cursor or change the terminal")
    func escaped() {
        let line = TextLine("a\u{1B}[2Jb\r\n\u{9B}31m\u{202E}", .bad)
        let written = line.rendered(isColoured: true)
        #expect(written == "\u{1B}[31ma\\u{1B}[2Jb\\r\\n\\u{9B}31m\\u{202E}\u{1B}[0m")
        #expect(TextLine("a\tb").text == "a\\tb")
    }

    @Test("Styles are written only to terminals with colours, and without trailing blanks")
    func looks() {
        let line = TextLine("a ", .good) + TextLine("b", .plain) + TextLine("  ", .faint)
        #expect(line.rendered(isColoured: false) == "a b")
        #expect(line.rendered(isColoured: true) == "\u{1B}[32ma \u{1B}[0mb")
        #expect(TextLine("a ", .reversed).rendered(isColoured: true) == "\u{1B}[7ma \u{1B}[0m")
        #expect(TextLine("a ", .reversed).rendered(isColoured: false) == "a")
    }

    @Test("Width is that of a terminal: zero for combining characters, two for wide ones")
    func columns() {
        #expect(TextLine("abc").columns == 3)
        #expect(TextLine("e\u{301}").columns == 1)
        #expect(TextLine("鳥🐦").columns == 4)
    }

    @Test("A line is cut at the width, never within a character")
    func cut() {
        #expect(TextLine("abcd").truncated(to: 4).text == "abcd")
        #expect(TextLine("abcde").truncated(to: 4).text == "abc…")
        #expect((TextLine("ab", .good) + TextLine("cde")).truncated(to: 3).text == "ab…")
        #expect(TextLine("鳥鳥鳥").truncated(to: 4).text == "鳥…")
        #expect(TextLine("abc").truncated(to: 0).text == "")
        for columns in 0...12 {
            let line = TextLine("a鳥b").padded(to: columns)
            #expect(line.columns == columns, "\(columns)")
            #expect(TextLine("a鳥b").padded(to: columns, isRight: true).columns == columns)
        }
    }
}

@Suite("Tables and bars")
struct TableTests {
    @Test("Columns are as wide as their widest cell, and figures are right-aligned")
    func table() {
        var table = Table([.left("NAME"), .right("N"), .flexible("URL")])
        table.append([TextLine("a"), TextLine("12"), TextLine("http://a.example/1")])
        table.append([TextLine("longer"), TextLine("3"), TextLine("b")])
        let lines = table.lines().map { $0.rendered(isColoured: false) }
        #expect(
            lines == [
                "NAME     N  URL", "a       12  http://a.example/1", "longer   3  b",
            ])
    }

    @Test("In a narrow terminal the flexible column is cut, and no line is too wide")
    func narrow() {
        var table = Table([.left("NAME"), .flexible("URL"), .right("N")])
        table.append([TextLine("abc"), TextLine("http://a.example/long/path"), TextLine("7")])
        #expect(table.lines(columnsMax: 24)[1].text == "abc   http://a.examp…  7")
        for columns in 1...40 {
            #expect(table.lines(columnsMax: columns).allSatisfy { $0.columns <= columns })
        }
    }

    @Test("A bar shows the share and is full only for everything")
    func bars() {
        #expect(Bar.text(0, columns: 4) == "    ")
        #expect(Bar.text(0.0001, columns: 4) == "▏   ")
        #expect(Bar.text(0.5, columns: 4) == "██  ")
        #expect(Bar.text(0.9999, columns: 4) == "███▉")
        #expect(Bar.text(1, columns: 4) == "████" && Bar.text(7, columns: 4) == "████")
        #expect(Bar.text(.nan, columns: 2) == "  ")
    }

    @Test("A sparkline has the newest value at the right, and gaps for unknown ones")
    func sparklines() {
        let line = Bar.sparkline([0, 50, nil, 100], most: 100, columns: 6)
        #expect(line == "  ▁▅ █")
        #expect(Bar.sparkline([1, 2, 3], most: 3, columns: 2) == "▆█")
        #expect(Bar.sparkline([0, 0], most: 0, columns: 2) == "▁▁")
    }

    @Test("A progress line has a percentage if the total is known")
    func progress() {
        let line = ProgressLine.line("purging", share: 0.5, note: "2/4 confirmed", columnsMax: 60)
        #expect(line.text == "purging  ██████████             50%  2/4 confirmed")
        let open = ProgressLine.line("reading", share: nil, note: "12 URLs", columnsMax: 60)
        #expect(open.text == "reading  12 URLs")
        #expect(ProgressLine.line("a", share: 1, note: "b", columnsMax: 12).columns == 12)
    }
}
