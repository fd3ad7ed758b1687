import Foundation
import Harness
import Testing

extension Outside {
    @Suite("Who may do what from the dashboard, and what it says when it cannot")
    struct DashboardAccessTests {
        @Test("A wrong token is refused kindly; a right one opens what its role may")
        func tokens() throws {
            let guarded = try GuardedNode()
            let page = try DashboardStage(guarded.node)
            try page.wait(for: "document.getElementById('token-dialog').open")
            let field = try page.element("#token-field")
            try page.wait(for: "document.activeElement.id === 'token-field'")
            for (token, words) in [
                ("", "Enter the token"), ("two words", "A token has no spaces"),
                ("nobody-has-this-one", "This node did not accept that token."),
            ] {
                try field.clear()
                try field.type(token)
                try page.browser.press(.enter)
                try page.wait("token-problem", says: words)
                #expect(try field.property("type") == "password" && page.text("node-id") == "–")
            }
            try page.click("#token-cancel")
            try page.wait("notices", says: "Without a token this node shows nothing.")
            try page.click(".notice.locked button")
            try field.type(GuardedNode.token("read"))
            try page.browser.press(.enter)
            try page.goLive()
            try page.wait("role", says: "read")
            #expect(try !page.element("#drain").isEnabled && !page.element("#purge-send").isEnabled)
            #expect(try page.text("purge-reason").contains("needs the role “purge”"))
            #expect(try page.text("drain-reason").contains("needs the role “admin”"))
            try page.click("#forget-token")
            try page.wait(for: "document.getElementById('token-dialog').open")
            try page.element("#token-field").type(GuardedNode.token("admin"))
            try page.click("#token-send")
            try page.goLive()
            try page.wait("role", says: "read, purge, drain")
            #expect(try page.element("#drain").isEnabled && page.element("#purge-send").isEnabled)
            #expect(try page.browser.consoleMessages().allSatisfy { $0.contains("401") })
        }

        @Test("After many wrong tokens the page says how long to wait, and then takes a right one")
        func attempts() throws {
            let guarded = try GuardedNode()
            let page = try DashboardStage(guarded.node)
            try page.wait(for: "document.getElementById('token-dialog').open")
            let field = try page.element("#token-field")
            for number in 0..<60 {
                try field.clear()
                try field.type("guess-guess-guess-\(number)")
                try page.browser.press(.enter)
                // While it is asked the button is off, and stays so while one has to wait.
                let button = "document.getElementById('token-send')"
                try page.wait(
                    for: "!\(button).disabled || \(button).textContent.startsWith('Wait')")
                if try page.text("token-problem").contains("Too many wrong tokens") { break }
            }
            try page.wait("token-problem", says: "Too many wrong tokens.")
            try page.wait("token-problem", says: "You may try again now.")
            try field.clear()
            try field.type(GuardedNode.token("purge"))
            try page.browser.press(.enter)
            try page.goLive()
        }

        @Test("A node is drained from the page, and put back")
        func drain() throws {
            let stage = try ClusterStage(2)
            let node = stage.nodes[0]
            let page = try DashboardStage(node)
            try page.goLive()
            func readiness() throws -> Int { try node.connectAdmin().get("/readyz").status }
            for (button, state, notice, status) in [
                ("Drain", "Draining", "This node is draining", 503), ("Undrain", "Ready", "", 200),
            ] {
                try page.click("#drain")
                try page.wait("drain-title", says: "\(button) this node?")
                // Escape does nothing but close.
                try page.browser.press(.escape)
                try page.wait(for: "!document.getElementById('drain-dialog').open")
                try page.click("#drain")
                try page.click("#drain-send")
                try page.wait("state", says: state)
                try page.wait("notices", says: notice)
                try expectSoon { try readiness() == status }
            }
            #expect(try page.text("notices").isEmpty)
            try page.expectNoComplaint()
        }

        @Test("A node that is gone is said to be, and is found again by itself")
        func lost() throws {
            let stage = try DiskStage()
            let page = try DashboardStage(stage.node)
            try page.goLive()
            stage.node.pause()
            try page.wait(for: "document.title.includes('not connected')")
            try page.wait("notices", says: "The figures are from before.")
            // While it still stands: once it answers, the page finds it by itself.
            try page.click(".notice.lost button")
            stage.node.resume()
            try page.goLive()
            try page.wait(for: "\(DashboardStage.text("notices")) === ''")
        }
    }
}
