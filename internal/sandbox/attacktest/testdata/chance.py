import random, secrets, tempfile, uuid
print(os.urandom(16).hex())
print(random.random())
print(hash('a'))
print(secrets.token_hex(16))
print(uuid.uuid4())
print(tempfile.mktemp())
print(id(object()))
try:
    import numpy
    print(numpy.random.random(), numpy.random.default_rng().random())
except ImportError:
    print(os.getrandom(8).hex())
print(time.time())
