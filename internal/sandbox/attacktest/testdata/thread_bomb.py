import threading
end()


def more():
    while True:
        try:
            threading.Thread(target=more).start()
        except RuntimeError:
            time.sleep(0.01)


more()
