open('workspace/next', 'w').write('works')
end()
